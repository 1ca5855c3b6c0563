"""What one measured stretch of time gave: the same figures for a server under load and for a plain loop."""

from collections.abc import Sequence

import msgspec

# A core that is used this much has nothing left to give: measurements of it miss a few percent.
_BUSY = 0.95


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies in milliseconds, CPU in microseconds per operation, shares as parts of one core.

    `refusal` shows the first of the answers that were refused.
    """

    rate: float
    p50: float
    p99: float
    cpu: float
    server_share: float
    load_share: float = 0.0
    refused: int = 0
    refusal: str = ""

    @property
    def load_was_the_limit(self) -> bool:
        return self.load_share > _BUSY > self.server_share


def sample(latencies: Sequence[float], elapsed: float, cpu: float) -> Sample:
    """Of one latency or more, all in seconds; `cpu` is what the measured process used of it."""
    ordered = sorted(latencies)
    return Sample(
        rate=len(ordered) / elapsed,
        p50=1_000 * ordered[len(ordered) // 2],
        p99=1_000 * ordered[len(ordered) * 99 // 100],
        cpu=1_000_000 * cpu / len(ordered),
        server_share=cpu / elapsed,
    )
