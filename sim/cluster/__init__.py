"""The simulated cluster: machines and queues, sizing, checks that jobs fit, faults."""
