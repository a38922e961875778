"""The stages over data, on Spark. Nothing outside this folder imports pyspark."""
