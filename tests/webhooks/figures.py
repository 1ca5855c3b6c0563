"""The figures of deliveries at /metrics."""

from prometheus_client.parser import text_string_to_metric_families

from tests.service import Service


def figure(service: Service, name: str, **labels: str) -> float:
    """One figure; 0 if there is none of these labels."""
    reply = service.get("/metrics")
    assert reply.status == 200
    for family in text_string_to_metric_families(reply.body.decode()):
        for sample in family.samples:
            if sample.name == name and sample.labels == labels:
                return sample.value
    return 0.0
