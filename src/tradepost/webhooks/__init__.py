"""Webhook delivery, and the receiver's side of it: `verify` says whether a delivery is what it claims to be.

Loading this package loads the standard library alone, so that a receiver can import it lightly.
"""

from tradepost.webhooks.signature import VerificationError, verify

__all__ = ["VerificationError", "verify"]
