"""Email addresses, checked by their syntax (RFC 5321, RFC 5322, RFC 6531); no mail is sent to them."""

import re

# Most addresses match this and need no full parser; the library checks all others.
_PLAIN = re.compile(
    r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@(?:[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?\.)+[a-z]{2,20}"
)
_MAX_LOCAL = 64


def check_email(address: str) -> str | None:
    """Why an email address is not valid; None if it is."""
    if _PLAIN.fullmatch(address) and "--" not in address and address.index("@") <= _MAX_LOCAL:
        return None
    if len(address.rpartition("@")[0].encode()) > _MAX_LOCAL:
        return f"must have at most {_MAX_LOCAL} bytes before the @ (RFC 5321, 4.5.3.1.1)"
    # Loaded when first needed: it brings the whole of IDNA with it.
    from email_validator import EmailNotValidError, validate_email  # noqa: PLC0415

    try:
        validate_email(address, check_deliverability=False, test_environment=True)
    except EmailNotValidError as error:
        return f"must be a valid email address: {error}"
    return None
