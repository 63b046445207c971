"""What is collected depends on what is installed: the doctests of Spark's room want pyspark."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("pyspark") else ["src/omkl/fleet/spark.py", "tests/spark_driver.py"]
