"""`Retry-After`: when a receiver wants to be asked again."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis.strategies import integers, text

from tradepost.egress.retry_after import retry_after

NOW = 1_763_712_930.0  # Fri, 21 Nov 2025 08:15:30 GMT
MONTH = 30 * 24 * 3600


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def anywhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine in one time zone or another."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        (str(MONTH), float(MONTH)),
        ("Fri, 21 Nov 2025 08:16:30 GMT", 60.0),
        ("Friday, 21-Nov-25 08:16:30 GMT", 60.0),
        ("Fri Nov 21 08:16:30 2025", 60.0),
        ("Fri, 21 Nov 2025 08:00:00 GMT", 0.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
)
def test_seconds_and_dates_are_understood(sent: str, seconds: float) -> None:
    """A number of seconds is itself; a date in any of HTTP's three forms is so far from now, wherever that is; the past is now."""
    assert retry_after(sent, NOW) == seconds


@pytest.mark.parametrize(
    "sent",
    [
        *("", "-1", "+5", "1.5", "1e3", "soon", "٣", "5 seconds"),
        *("Fri, 99 Nov 2025 08:15:30 GMT", "Fri, 21 Nov 99999 08:15:30 GMT"),
    ],
)
def test_nonsense_is_as_good_as_nothing(sent: str) -> None:
    """What is neither is no wish."""
    assert retry_after(sent, NOW) is None


@pytest.mark.parametrize(
    "sent",
    [str(MONTH + 1), "2592000000", "9" * 8000, "Fri, 21 Nov 2031 08:15:30 GMT", "Fri Nov 21 08:15:30 2031"],
)
def test_no_wish_is_for_more_than_a_month(sent: str) -> None:
    """Whoever asks for more than 30 days, in whatever form, asks for 30 days."""
    assert retry_after(sent, NOW) == MONTH


@given(text())
def test_nothing_sent_raises(sent: str) -> None:
    """Whatever is sent, it comes to nothing or to seconds in bounds."""
    seconds = retry_after(sent, NOW)
    assert seconds is None or 0 <= seconds <= MONTH


@given(integers(0, MONTH))
def test_any_sane_number_is_taken(seconds: int) -> None:
    """Every whole number of seconds up to a month is a wish."""
    assert retry_after(str(seconds), NOW) == seconds
