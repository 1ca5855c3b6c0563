"""The statements that are not plain, by the thing they are about."""
