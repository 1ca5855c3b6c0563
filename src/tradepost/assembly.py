"""The assembly: settings become a database, surfaces and workers. The only place that chooses."""

import asyncio
import gc
import logging
from dataclasses import dataclass
from pathlib import Path

from tradepost import catalogue, logs, settings
from tradepost.access.api_keys import Doorkeeper
from tradepost.access.caller import Permission
from tradepost.access.rate_limits import InProcess, Limit, RateLimits, Shared
from tradepost.access.sealing import Sealer
from tradepost.actions.change import Services
from tradepost.asgi import Application
from tradepost.clock import Clock
from tradepost.documents import playground
from tradepost.documents.document import Guard
from tradepost.documents.graphql_schema import schema_document
from tradepost.documents.routes import DocumentRoutes
from tradepost.domain.order import Order
from tradepost.egress.client import Client
from tradepost.egress.targets import Targets
from tradepost.events.feed import Feed
from tradepost.events.outbox import Emitter
from tradepost.graphql.documents import DocumentCache
from tradepost.graphql.endpoint import Endpoint
from tradepost.graphql.limits import Limits as GraphQLLimits
from tradepost.graphql.order_status import OrderStatus
from tradepost.graphql.persisted import PersistedQueries
from tradepost.graphql.schema import BoundSchema, schema_text
from tradepost.graphql.socket_operations import SocketOperations
from tradepost.graphql.sockets import Sockets
from tradepost.graphql.surface import GraphQL
from tradepost.housekeeping import Housekeeping
from tradepost.http.access_control import AccessControl
from tradepost.http.exchange import Handler
from tradepost.metrics import Metrics
from tradepost.perform import Performer
from tradepost.problems import Unavailable
from tradepost.resource import Resource
from tradepost.rest.surface import Rest
from tradepost.settings import BadSetting, Settings
from tradepost.storage.database import Database
from tradepost.storage.migrations import head
from tradepost.storage.statements import webhook_secrets
from tradepost.versions.changes import VERSIONS, Version
from tradepost.versions.lifecycle import Dates, Lifecycle
from tradepost.webhooks.claims import Claims
from tradepost.webhooks.health import Health
from tradepost.webhooks.results import Results
from tradepost.webhooks.retry_schedule import RetrySchedule
from tradepost.webhooks.upkeep import Upkeep
from tradepost.webhooks.worker import Worker

_log = logging.getLogger("tradepost")

_DAY_MS = 24 * 3600 * 1000
_LEASE_MS = 20_000
_LEASE_MARGIN_SECONDS = 10.0  # beside the two requests that an attempt may take


def application() -> Application:
    """The application as a server loads it: from the environment."""
    found = settings.load()
    logs.set_up(*found.log)
    return assemble(found)


def database(found: Settings) -> Database:
    """The engine that the database's address names."""
    if found.database_file:
        from tradepost.storage.sqlite import SqliteDatabase  # noqa: PLC0415 (one engine is loaded, not both)

        return SqliteDatabase(found.database_file)
    from tradepost.storage.postgres import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(found.database_url, found.database_pool)


async def migrate(found: Settings) -> None:
    """Brings the schema of the database up to date."""
    store = database(found)
    await store.start()
    try:
        await store.migrate()
    finally:
        await store.stop()


def performer(found: Settings, store: Database, clock: Clock, resources: tuple[Resource, ...]) -> Performer:
    """What calls are performed with."""
    emitter = Emitter(found.event_prefix, catalogue.event_types(resources))
    targets = Targets(allow_private=found.webhook_allow_private)
    return Performer(store, clock, Services(emitter, sealer(found), targets))


def sealer(found: Settings) -> Sealer:
    """What keeps secrets sealed: with the keys of the settings, else with one in a file."""
    if found.env == "production" and not found.database_file and not found.encryption_key:
        message = "TRADEPOST_ENCRYPTION_KEY must be set in production: `openssl rand -base64 32` makes one"
        raise BadSetting(message)
    return Sealer(found.encryption_key, Path(f"{found.database_file or 'tradepost'}.key"))


def assemble(
    settings: Settings,
    *,
    clock: Clock | None = None,
    resources: tuple[Resource, ...] = catalogue.RESOURCES,
    versions: tuple[Version, ...] = VERSIONS,
    schema: str | None = None,
) -> Application:
    """The whole service. Tests pass what is to differ; nothing else does."""
    clock = clock or Clock()
    store = database(settings)
    doorkeeper = Doorkeeper(store, clock)
    metrics = metrics_of(settings)
    limits = _limits(settings)
    access_control = AccessControl(doorkeeper, limits)
    perform = performer(settings, store, clock, resources)
    rest = Rest(resources, lifecycle_of(settings, clock, versions), perform, access_control)
    feed = Feed(store)
    graphql = _graphql(settings, BoundSchema(schema or schema_text(), resources), perform, feed)
    operations = SocketOperations(graphql, access_control)
    background = _Background(
        settings=settings,
        performer=perform,
        housekeeping=Housekeeping(store, clock, metrics, settings.retention_days),
        deliveries=Deliveries(settings, perform, metrics) if settings.deliveries else None,
        feed=feed,
        graphql=graphql,
        doorkeeper=doorkeeper,
        log=logs.RequestLog(settings.log[0]),
    )
    page = None if settings.env == "production" else playground.page
    return Application(
        rest=rest,
        graphql=Endpoint(graphql, access_control, page),
        documents={
            **DocumentRoutes(rest, store, metrics, settings).pages(),
            **_graphql_documents(settings, graphql, access_control),
        },
        sockets=Sockets(operations, metrics, settings.graphql_max_sockets),
        limits=limits,
        log=background.log,
        metrics=metrics,
        startup=background.start,
        shutdown=background.stop,
        base_url=settings.base_url,
    )


@dataclass
class _Background:
    """What runs besides the requests, from the start of the process to its end."""

    settings: Settings
    performer: Performer
    housekeeping: Housekeeping
    deliveries: "Deliveries | None"
    feed: Feed
    graphql: GraphQL
    doorkeeper: Doorkeeper
    log: logs.RequestLog
    _task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Opens and checks the database; raises `Unavailable` if its schema is not up to date."""
        store = self.performer.database
        await store.start()
        try:
            await check_schema(store)
            await check_secrets(self.settings, self.performer)
        except BaseException:
            await store.stop()
            raise
        self._task = asyncio.create_task(self.housekeeping.run())
        if self.deliveries:
            self.deliveries.start()
        # What is alive now lives as long as the process; the collector need not look at it again.
        gc.collect()
        gc.freeze()

    async def stop(self) -> None:
        """Waits for what is being written, and closes the database."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self.deliveries:
            await self.deliveries.stop()
        await self.feed.stop()
        await self.graphql.finish()
        await self.doorkeeper.finish()
        await self.performer.services.targets.close()
        await self.performer.database.stop()
        self.log.flush()


class Deliveries:
    """The delivery of webhooks in one process: a worker and the upkeep, from start to stop."""

    def __init__(self, found: Settings, perform: Performer, metrics: Metrics) -> None:
        means, figures = perform.services, metrics.deliveries
        lease_ms = max(_LEASE_MS, round(1000 * (2 * found.webhook_timeout + _LEASE_MARGIN_SECONDS)))
        schedule = RetrySchedule(found.webhook_schedule)
        health = Health(round(found.webhook_disable_days * _DAY_MS), 1000 * max(found.webhook_schedule))
        self.client = Client(means.targets, seconds=found.webhook_timeout)
        self.worker = Worker(
            perform,
            self.client,
            Claims(means.emitter, means.sealer, lease_ms),
            Results(schedule, health, figures),
            figures,
        )
        self.upkeep = Upkeep(perform, figures)
        self._caring: asyncio.Task[None] | None = None
        self._working: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to deliver, on the running loop."""
        self._caring = asyncio.create_task(self.upkeep.run())
        self._working = asyncio.create_task(self.worker.run())

    async def stop(self) -> None:
        """Claims nothing more; waits for what is out and writes it down."""
        if self._caring:
            self._caring.cancel()
        await self.worker.stop()
        begun = [each for each in (self._caring, self._working) if each]
        await asyncio.gather(*begun, return_exceptions=True)
        await self.client.close()


def _graphql(found: Settings, bound: BoundSchema, perform: Performer, feed: Feed) -> GraphQL:
    limits = GraphQLLimits(
        found.graphql_max_depth,
        found.graphql_max_complexity,
        found.graphql_max_tokens,
        found.graphql_max_bytes,
        found.graphql_max_aliases,
    )
    gated = found.env == "production"
    documents = DocumentCache(bound.schema, bound.resolvers, limits, suggestions=not gated)
    order_status = OrderStatus(bound.resource(Order), perform.database, feed, found.event_prefix)
    return GraphQL(
        bound,
        PersistedQueries(perform.database, perform.clock, documents, found.graphql_allowlist),
        perform,
        order_status,
        timeout_seconds=found.graphql_timeout,
        gated=gated,
    )


def _graphql_documents(
    settings: Settings, graphql: GraphQL, access_control: AccessControl
) -> dict[str, Handler]:
    """The schema, and outside production the files of the page at /graphql."""
    text = graphql.bound.text
    if settings.env == "production":
        guard = Guard(access_control, Permission("introspection", user_keys=True))
        return {"/graphql/schema": schema_document(text, guard)}
    return {"/graphql/schema": schema_document(text, None), **playground.assets()}


def metrics_of(found: Settings) -> Metrics:
    """The figures of a process; on SQLite with the size of its write-ahead log."""
    wal = Path(f"{found.database_file}-wal") if found.database_file else None
    return Metrics(found.metrics_dir, wal)


def lifecycle_of(found: Settings, clock: Clock, versions: tuple[Version, ...] = VERSIONS) -> Lifecycle:
    """Where each version is in its life; raises `BadSetting` if one is announced that there is not."""
    unknown = found.api_versions.keys() - {version.name for version in versions}
    if unknown:
        message = f"TRADEPOST_API_VERSIONS names {', '.join(sorted(unknown))}, which is not a version"
        raise BadSetting(message)
    dates = {
        name: Dates(each.deprecated, each.sunset, each.link) for name, each in found.api_versions.items()
    }
    return Lifecycle(versions, dates, clock, found.deprecation_format)


async def check_schema(store: Database) -> None:
    """Raises `Unavailable` unless the schema is the one this program knows."""
    found, known = await store.schema_version(), head()
    if found is None or found < known:
        message = f"The database is at schema {found or 'none'}, not {known}: run `tradepost migrate`"
        raise Unavailable(message)
    if found > known:
        message = f"The database is at schema {found}, newer than {known}: update this tradepost"
        raise Unavailable(message)


async def check_secrets(found: Settings, perform: Performer) -> None:
    """Raises `Unavailable` if the webhook secrets in the database were sealed with another key than ours."""
    kept = [sealed for (sealed,) in await perform.database.reading().rows(webhook_secrets.SEALED)]
    if kept or found.database_file:
        perform.services.sealer.check(kept)


def _limits(found: Settings) -> RateLimits:
    limit = Limit(*found.rate_limit)
    return Shared(limit, found.redis_url) if found.redis_url else InProcess(limit)
