"""The engines the tests run against: real servers, started for one test run and gone after it."""
