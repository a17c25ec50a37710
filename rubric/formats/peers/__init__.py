"""Rubrics of other Python libraries and of benchmarks: autorubric, HealthBench, PaperBench."""
