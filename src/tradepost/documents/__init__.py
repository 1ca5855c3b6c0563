"""What people read: documentation, explanations of problems, and the state of the service."""
