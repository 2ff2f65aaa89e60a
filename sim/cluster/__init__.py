"""What it runs on: machines and queues, sizing and what fits, faults."""
