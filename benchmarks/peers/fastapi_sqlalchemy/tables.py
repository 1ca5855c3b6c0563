"""The tables as ORM classes. Money is kept in minor units; all of it has two decimals here."""

from datetime import UTC, datetime
from typing import Any, ClassVar
from uuid import uuid4

from sqlalchemy import JSON, DateTime, Dialect, ForeignKey, String, TypeDecorator
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship


def new_id() -> str:
    return str(uuid4())


def now() -> datetime:
    return datetime.now(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """SQLite forgets the time zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_result_value(self, value: datetime | None, _: Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


class Base(DeclarativeBase):
    type_annotation_map: ClassVar = {datetime: UtcDateTime, dict[str, Any]: JSON, list[str]: JSON}


class Row(Base):
    """What every resource has."""

    __abstract__ = True

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now, onupdate=now)


class User(Row):
    __tablename__ = "users"

    name: Mapped[str] = mapped_column(String(200))
    email: Mapped[str] = mapped_column(String(320), unique=True)
    status: Mapped[str] = mapped_column(default="ACTIVE")


class Product(Row):
    __tablename__ = "products"

    sku: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(200))
    description: Mapped[str | None]
    price_minor: Mapped[int]
    currency: Mapped[str] = mapped_column(String(3))
    stock: Mapped[int | None]
    status: Mapped[str] = mapped_column(default="ACTIVE")

    @property
    def price(self) -> float:
        return self.price_minor / 100


class Order(Row):
    __tablename__ = "orders"

    user_id: Mapped[str] = mapped_column(ForeignKey(User.id), index=True)
    status: Mapped[str] = mapped_column(default="PENDING")
    currency: Mapped[str] = mapped_column(String(3))
    total_minor: Mapped[int]
    shipping_address_id: Mapped[str | None]
    shipping_address: Mapped[dict[str, Any] | None]

    line_items: Mapped[list["LineItem"]] = relationship(order_by="LineItem.position", lazy="raise")

    @property
    def total(self) -> float:
        return self.total_minor / 100


class LineItem(Row):
    __tablename__ = "line_items"

    order_id: Mapped[str] = mapped_column(ForeignKey(Order.id), index=True)
    product_id: Mapped[str] = mapped_column(ForeignKey(Product.id))
    position: Mapped[int]
    quantity: Mapped[int]
    sku: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(200))
    unit_price_minor: Mapped[int]

    @property
    def unit_price(self) -> float:
        return self.unit_price_minor / 100

    @property
    def total(self) -> float:
        return self.unit_price_minor * self.quantity / 100


class Event(Base):
    __tablename__ = "events"

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    type: Mapped[str]
    subject: Mapped[str]
    time: Mapped[datetime] = mapped_column(default=now)
    data: Mapped[dict[str, Any]]


class ApiKey(Base):
    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(36), primary_key=True, default=new_id)
    hash: Mapped[str] = mapped_column(String(64), unique=True)
    scopes: Mapped[list[str]]
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
