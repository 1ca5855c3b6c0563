"""What goes in and out as JSON, in pydantic."""

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Schema(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, from_attributes=True)


class Body(Schema):
    model_config = ConfigDict(extra="forbid")


class Resource(Schema):
    id: str
    created_at: datetime
    updated_at: datetime


Item = TypeVar("Item", bound=Resource)


class UserOut(Resource):
    name: str
    email: str
    status: Literal["ACTIVE", "DEACTIVATED"]


class ProductOut(Resource):
    sku: str
    name: str
    description: str | None
    price: float
    currency: str
    stock: int | None
    status: Literal["ACTIVE", "ARCHIVED"]


class LineItemOut(Resource):
    order_id: str
    product_id: str
    quantity: int
    sku: str
    name: str
    unit_price: float
    total: float


class OrderOut(Resource):
    user_id: str
    status: Literal["PENDING", "FULFILLED", "CANCELLED"]
    currency: str
    total: float
    line_items: list[LineItemOut]
    shipping_address_id: str | None
    shipping_address: dict[str, Any] | None


class Page(Schema, Generic[Item]):
    items: list[Item]
    next: str | None


class LineItemIn(Body):
    product_id: str
    quantity: int = Field(ge=1, le=10_000)


class OrderIn(Body):
    user_id: str
    line_items: list[LineItemIn] = Field(min_length=1, max_length=100)


class StockIn(Body):
    stock: int | None = Field(ge=0)
