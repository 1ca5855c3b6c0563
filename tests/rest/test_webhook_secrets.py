"""Webhook secrets: made one after another, the old one retiring; shown once, never to be seen again."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import shop
from tests.rest.hooks import an_endpoint, at, secrets_of
from tests.service import Service


@pytest.fixture(scope="module")
def service(engine: str, new_service: Callable[..., Service]) -> Service:
    """A service of its own: nobody else's events are to be queued for all these endpoints."""
    return new_service(engine)


def rotated(service: Service, endpoint: Any) -> Any:
    """What a new secret of an endpoint shows."""
    return service.made(f"{at(endpoint)}/secrets", {})


def test_a_new_secret_signs_and_the_old_one_retires(service: Service) -> None:
    """A POST makes a CURRENT secret, shown with its value this once; the one before becomes RETIRING."""
    endpoint = an_endpoint(service)
    (first,) = secrets_of(service, endpoint)
    reply = service.post(f"{at(endpoint)}/secrets", {})
    made = reply.json
    assert (reply.status, reply.headers["cache-control"]) == (201, "no-store")
    assert reply.headers["location"] == f"{at(endpoint)}/secrets/{made['id']}"
    assert made.pop("value").startswith("whsec_")
    assert (made["endpointId"], made["status"], made["retiredAt"]) == (endpoint["id"], "CURRENT", None)
    assert shop.get(service, f"{at(endpoint)}/secrets/{made['id']}") == made
    assert secrets_of(service, endpoint) == {first: "RETIRING", made["id"]: "CURRENT"}


def test_an_endpoint_that_is_not_there_is_named_in_words(service: Service) -> None:
    """Below an endpoint that is not there, what is missing is called as it is spoken of."""
    reply = service.get("/v1/webhook-endpoints/nope/secrets")
    assert (reply.status, reply.json["detail"]) == (404, "There is no webhook endpoint nope")


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (None, {}),
        (None, {"content_type": "application/json"}),
        (b"", {"content_type": "application/json", "content_length": "0"}),
        (b"{}", {}),
        ({"id": "mine", "status": "RETIRED", "value": "whsec_mine"}, {}),
    ],
)
def test_nothing_needs_to_be_said(service: Service, body: Any, headers: dict[str, str]) -> None:
    """A POST without a body, with an empty object, or with what only the service sets makes a secret of its own."""
    endpoint = an_endpoint(service)
    reply = service.call("POST", f"{at(endpoint)}/secrets", body, **headers)
    assert (reply.status, reply.json["status"]) == (201, "CURRENT")
    assert reply.json["value"] not in ("whsec_mine", endpoint["secret"])


def test_an_empty_body_is_enough_only_where_nothing_is_required(service: Service) -> None:
    """A POST without a body where something has to be said is refused as before; and a body has to be JSON."""
    assert service.call("POST", "/v1/webhook-endpoints").status == 415
    path = f"{at(an_endpoint(service))}/secrets"
    assert (
        service.call("POST", path, b"value=1", content_type="application/x-www-form-urlencoded").status == 415
    )
    assert service.call("POST", path, b"[]").status == 400
    assert service.call("POST", path, {"colour": "red"}).status == 422


def test_there_is_no_third_secret_while_one_retires(service: Service) -> None:
    """A second rotation inside the window is 409 that says so; nothing changes."""
    endpoint = an_endpoint(service)
    rotated(service, endpoint)
    before = secrets_of(service, endpoint)
    reply = service.post(f"{at(endpoint)}/secrets", {})
    assert reply.status == 409
    assert "RETIRING" in reply.json["detail"]
    assert secrets_of(service, endpoint) == before


def test_of_two_rotations_at_once_one_wins(service: Service) -> None:
    """However many rotate at once, there is one new secret, and one that retires."""
    for _ in range(5):
        endpoint = an_endpoint(service)
        path = f"{at(endpoint)}/secrets"
        replies = service.calls(*[("POST", path, {})] * 6)
        assert sorted(reply.status for reply in replies) == [201, 409, 409, 409, 409, 409]
        assert sorted(secrets_of(service, endpoint).values()) == ["CURRENT", "RETIRING"]


def test_a_rotation_and_an_end_at_once_leave_one_current(service: Service) -> None:
    """Rotations, deletions of secrets and of the endpoint at once fail nobody, and leave one CURRENT or none."""
    endpoint = an_endpoint(service)
    path = f"{at(endpoint)}/secrets"
    rotated(service, endpoint)
    ends: list[tuple[Any, ...]] = [("DELETE", f"{path}/{each}") for each in secrets_of(service, endpoint)]
    replies = service.calls(*[("POST", path, {})] * 3, *ends * 2)
    assert {reply.status for reply in replies} <= {201, 204, 409}
    assert list(secrets_of(service, endpoint).values()).count("CURRENT") == 1
    replies = service.calls(*[("POST", path, {})] * 3, ("DELETE", at(endpoint)), *ends)
    assert {reply.status for reply in replies} <= {201, 204, 404, 409}
    assert (
        service.rows(
            f"SELECT sealed FROM webhook_secrets WHERE endpoint_id = '{endpoint['id']}'"
            " AND sealed IS NOT NULL"
        )
        == []
    )


def test_a_retiring_secret_can_be_ended_early(service: Service) -> None:
    """DELETE of a RETIRING secret retires it at once, forgets its value, and is 204 again; the next may follow."""
    endpoint = an_endpoint(service)
    (first,) = secrets_of(service, endpoint)
    second = rotated(service, endpoint)["id"]
    for _ in range(2):
        assert service.call("DELETE", f"{at(endpoint)}/secrets/{first}").status == 204
        assert secrets_of(service, endpoint) == {first: "RETIRED", second: "CURRENT"}
    retired = shop.get(service, f"{at(endpoint)}/secrets/{first}")
    assert retired["retiredAt"] is not None
    assert service.rows(f"SELECT sealed FROM webhook_secrets WHERE id = '{first}'") == [(None,)]
    assert secrets_of(service, endpoint) | {
        rotated(service, endpoint)["id"]: "CURRENT",
        second: "RETIRING",
    } == (secrets_of(service, endpoint))


def test_the_current_secret_stays(service: Service) -> None:
    """DELETE of the CURRENT secret is 409: an endpoint always has one to sign with."""
    endpoint = an_endpoint(service)
    (only,) = secrets_of(service, endpoint)
    reply = service.call("DELETE", f"{at(endpoint)}/secrets/{only}")
    assert reply.status == 409
    assert "CURRENT" in reply.json["detail"]
    assert secrets_of(service, endpoint) == {only: "CURRENT"}


def test_a_secret_is_deleted_only_as_it_was_seen(service: Service) -> None:
    """If-Match names the state of a secret: once it retires, what was seen before does not hold."""
    endpoint = an_endpoint(service)
    (first,) = secrets_of(service, endpoint)
    path = f"{at(endpoint)}/secrets/{first}"
    seen = service.get(path).headers["etag"]
    rotated(service, endpoint)
    assert service.get(path).headers["etag"] != seen
    assert service.call("DELETE", path, if_match=seen).status == 412
    assert service.call("DELETE", path, if_match=service.get(path).headers["etag"]).status == 204


def test_a_secret_belongs_to_its_endpoint(service: Service) -> None:
    """Below another endpoint, or at an address of its own, a secret is not there."""
    mine, other = an_endpoint(service), an_endpoint(service)
    (secret,) = secrets_of(service, mine)
    for method in ("GET", "DELETE"):
        assert service.call(method, f"{at(other)}/secrets/{secret}").status == 404
        assert service.call(method, f"/v1/secrets/{secret}").status == 404
        assert service.call(method, f"/v1/webhook-secrets/{secret}").status == 404
    assert list(secrets_of(service, other)) != [secret]
    assert service.call("PATCH", f"{at(mine)}/secrets/{secret}", {}).status == 405


def test_a_repeated_rotation_shows_the_same_value(service: Service) -> None:
    """Under an idempotency key a rotation happens once, and shows its value again, with or without a body."""
    endpoint, key = an_endpoint(service), shop.unique()
    path = f"{at(endpoint)}/secrets"
    first = service.call("POST", path, idempotency_key=key)
    for nothing in (None, b"{}"):
        again = service.call("POST", path, nothing, idempotency_key=key)
        assert (again.status, again.body, again.headers["idempotency-replayed"]) == (201, first.body, "true")
    assert len(secrets_of(service, endpoint)) == 2


def test_a_rotation_needs_the_scope_to_write(service: Service) -> None:
    """webhooks:read sees secrets without their values, and changes none."""
    endpoint = an_endpoint(service)
    reader = service.new_key("webhooks:read")
    page = service.get(f"{at(endpoint)}/secrets", key=reader)
    assert page.status == 200
    assert endpoint["secret"].encode() not in page.body
    assert "value" not in page.json["items"][0]
    assert service.post(f"{at(endpoint)}/secrets", {}, key=reader).status == 403


def test_secrets_are_sealed_with_the_key_of_the_service(
    engine: str, new_service: Callable[..., Service]
) -> None:
    """What is kept of a secret is its value, sealed: the service's key opens it, and a row is another each time."""
    service = new_service(engine)
    endpoint = an_endpoint(service)
    value = rotated(service, endpoint)["value"]
    kept = [row[0] for row in service.rows("SELECT sealed FROM webhook_secrets ORDER BY id")]
    opened = [service.app.rest.performer.services.sealer.open(each) for each in kept]
    assert opened == [endpoint["secret"], value]


def test_many_endpoints_rotate_beside_each_other(service: Service) -> None:
    """Rotations of different endpoints at once all succeed."""
    endpoints = [an_endpoint(service) for _ in range(8)]
    replies = service.calls(*[("POST", f"{at(each)}/secrets", {}) for each in endpoints])
    assert {reply.status for reply in replies} == {201}
    assert len({reply.json["value"] for reply in replies}) == 8
