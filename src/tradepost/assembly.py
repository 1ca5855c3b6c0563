"""The assembly: the only place that turns settings into a database, surfaces and workers."""

import asyncio
import gc
import logging
from dataclasses import dataclass
from pathlib import Path

from tradepost import catalogue, logs
from tradepost.access.api_keys import Authenticator
from tradepost.access.caller import Permission
from tradepost.access.rate_limits import Limit, ProcessLimits, RateLimits, RedisLimits
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
from tradepost.settings import BadSetting, Settings, load
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
_LEASE_MARGIN_SECONDS = 10.0  # in addition to the two requests of an attempt


def application() -> Application:
    """The application with the settings of the environment, for a server to load. Raises `BadSetting`."""
    settings = load()
    logs.set_up(*settings.log)
    return assemble(settings)


def database(settings: Settings) -> Database:
    """The engine that the database URL selects, not started."""
    if settings.database_file:
        from tradepost.storage.sqlite import SqliteDatabase  # noqa: PLC0415 (one engine is loaded, not both)

        return SqliteDatabase(settings.database_file)
    from tradepost.storage.postgres import PostgresDatabase  # noqa: PLC0415

    return PostgresDatabase(settings.database_url, settings.database_pool)


async def migrate(settings: Settings) -> None:
    """Brings the schema of the database up to date. Raises `Unavailable`."""
    store = database(settings)
    await store.start()
    try:
        await store.migrate()
    finally:
        await store.stop()


def performer(
    settings: Settings, store: Database, clock: Clock, resources: tuple[Resource, ...]
) -> Performer:
    """The performer of calls, with its services."""
    emitter = Emitter(settings.event_prefix, catalogue.event_types(resources))
    targets = Targets(allow_private=settings.webhook_allow_private)
    return Performer(store, clock, Services(emitter, sealer(settings), targets))


def sealer(settings: Settings) -> Sealer:
    """The sealer of secrets, with the keys of the settings or, without any, with one in a file.

    Raises `BadSetting` without a key in production on PostgreSQL, where processes do not share a file.
    """
    if settings.env == "production" and not settings.database_file and not settings.encryption_key:
        message = "TRADEPOST_ENCRYPTION_KEY must be set in production: `openssl rand -base64 32` makes one"
        raise BadSetting(message)
    return Sealer(settings.encryption_key, Path(f"{settings.database_file or 'tradepost'}.key"))


def assemble(
    settings: Settings,
    *,
    clock: Clock | None = None,
    resources: tuple[Resource, ...] = catalogue.RESOURCES,
    versions: tuple[Version, ...] = VERSIONS,
    schema: str | None = None,
) -> Application:
    """The whole service. Tests can replace the parts that are keyword arguments. Raises `BadSetting`."""
    clock = clock or Clock()
    store = database(settings)
    authenticator = Authenticator(store, clock)
    metrics = metrics_of(settings)
    limits = _limits(settings)
    access_control = AccessControl(authenticator, limits)
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
        authenticator=authenticator,
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
    authenticator: Authenticator
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
        await self.authenticator.finish()
        await self.performer.services.targets.close()
        await self.performer.database.stop()
        self.log.flush()


class Deliveries:
    """The delivery of webhooks in one process: a worker and the upkeep."""

    def __init__(self, settings: Settings, perform: Performer, metrics: Metrics) -> None:
        services, figures = perform.services, metrics.deliveries
        lease_ms = max(_LEASE_MS, round(1000 * (2 * settings.webhook_timeout + _LEASE_MARGIN_SECONDS)))
        schedule = RetrySchedule(settings.webhook_schedule)
        health = Health(round(settings.webhook_disable_days * _DAY_MS), 1000 * max(settings.webhook_schedule))
        self.client = Client(services.targets, seconds=settings.webhook_timeout)
        self.worker = Worker(
            perform,
            self.client,
            Claims(services.emitter, services.sealer, lease_ms),
            Results(schedule, health, figures),
            figures,
        )
        self.upkeep = Upkeep(perform, figures)
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Starts to deliver, on the running loop."""
        self._tasks = [asyncio.create_task(self.upkeep.run()), asyncio.create_task(self.worker.run())]

    async def stop(self) -> None:
        """Claims no more deliveries, waits for those in flight and writes down their results."""
        for upkeep in self._tasks[:1]:
            upkeep.cancel()
        await self.worker.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()


def _graphql(settings: Settings, bound: BoundSchema, perform: Performer, feed: Feed) -> GraphQL:
    limits = GraphQLLimits(
        settings.graphql_max_depth,
        settings.graphql_max_complexity,
        settings.graphql_max_tokens,
        settings.graphql_max_bytes,
        settings.graphql_max_aliases,
    )
    gated = settings.env == "production"
    documents = DocumentCache(bound.schema, bound.resolvers, limits, suggestions=not gated)
    order_status = OrderStatus(bound.resource(Order), perform.database, feed, settings.event_prefix)
    return GraphQL(
        bound,
        PersistedQueries(perform.database, perform.clock, documents, settings.graphql_allowlist),
        perform,
        order_status,
        timeout_seconds=settings.graphql_timeout,
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


def metrics_of(settings: Settings) -> Metrics:
    """The metrics of a process, which on SQLite include the size of the write-ahead log."""
    wal = Path(f"{settings.database_file}-wal") if settings.database_file else None
    return Metrics(settings.metrics_dir, wal)


def lifecycle_of(settings: Settings, clock: Clock, versions: tuple[Version, ...] = VERSIONS) -> Lifecycle:
    """The lifecycle of the versions. Raises `BadSetting` if the settings name an unknown version."""
    unknown = settings.api_versions.keys() - {version.name for version in versions}
    if unknown:
        message = f"TRADEPOST_API_VERSIONS names {', '.join(sorted(unknown))}, which is not a version"
        raise BadSetting(message)
    dates = {
        name: Dates(each.deprecated, each.sunset, each.link) for name, each in settings.api_versions.items()
    }
    return Lifecycle(versions, dates, clock, settings.deprecation_format)


async def check_schema(store: Database) -> None:
    """Raises `Unavailable` unless the schema has the version of this program."""
    current, known = await store.schema_version(), head()
    if current is None or current < known:
        message = f"The database is at schema {current or 'none'}, not {known}: run `tradepost migrate`"
        raise Unavailable(message)
    if current > known:
        message = f"The database is at schema {current}, newer than {known}: update this tradepost"
        raise Unavailable(message)


async def check_secrets(settings: Settings, perform: Performer) -> None:
    """Raises `Unavailable` unless the configured keys decrypt all webhook secrets in the database."""
    sealed = [text for (text,) in await perform.database.reading().rows(webhook_secrets.SEALED)]
    if sealed or settings.database_file:
        perform.services.sealer.check(sealed)


def _limits(settings: Settings) -> RateLimits:
    limit = Limit(*settings.rate_limit)
    return RedisLimits(limit, settings.redis_url) if settings.redis_url else ProcessLimits(limit)
