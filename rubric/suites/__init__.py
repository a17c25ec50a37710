"""Suites: cases with their rubrics, run against fixed responses or live targets, and reported."""
