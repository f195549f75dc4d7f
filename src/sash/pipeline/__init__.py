"""Declared pipelines: a TOML file read and checked, run on Spark, watched."""
