"""The Online Retail data set, 541,909 order lines of a gift wholesaler, as `tradepost import` takes it."""
