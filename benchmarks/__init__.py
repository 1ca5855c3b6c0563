"""What tradepost costs, measured: each question is asked of it, of a ceiling and of a peer, in one run."""
