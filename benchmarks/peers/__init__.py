"""What tradepost is measured against."""
