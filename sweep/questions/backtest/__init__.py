"""Backtest: a log's jobs, as they really ran, against the same jobs simulated under policies.

The log is audited first (`audit`): what it shows that no simulation of one pool can have. Then each
policy is simulated many times with launch lags drawn from the log's own (`request`, `strategy`),
since a backfilled schedule is chaotic, and each run is compared with the log (`compare`,
`order`). The likelihood of the recorded starts under a policy's runs says which policy is nearest
(`likelihood`).
"""
