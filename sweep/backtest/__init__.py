"""Backtest: a log's recorded waits beside those of simulated policies."""
