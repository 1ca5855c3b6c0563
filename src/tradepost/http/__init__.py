"""What every HTTP surface shares: a request, an answer, and how a problem looks."""
