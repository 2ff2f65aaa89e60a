"""Compiled loops of the backtest; they know arrays only."""
