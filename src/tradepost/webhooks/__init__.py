"""Webhook delivery. Its place in the house; it reads the outbox that every write already fills."""
