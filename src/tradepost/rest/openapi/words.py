"""What things are called in the document: a record's kind as a name, as words, with its article."""

from tradepost.domain.record import Record

_UPPER = {"api": "API", "url": "URL"}


def pascal(kind: str) -> str:
    """`line_item` → `LineItem`: names of schemas, and the second half of an operation's."""
    return "".join(part.title() for part in kind.split("_"))


def words(kind: str) -> str:
    """`api_key` → `API key`."""
    return " ".join(_UPPER.get(part, part) for part in kind.split("_"))


def one(record: type[Record]) -> str:
    """`an order`, `a user`: the vowel that is heard decides."""
    return f"{'an' if record.kind[0] in 'aeio' else 'a'} {words(record.kind)}"


def many(record: type[Record]) -> str:
    """`line items`."""
    return words(record.plural)


def heading(record: type[Record]) -> str:
    """`Line items`."""
    name = many(record)
    return name[0].upper() + name[1:]
