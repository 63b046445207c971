"""Models behind HTTP that predict and learn, with a durable log, metrics and a dashboard: `omkl serve`.

>>> from omkl.serve import Client
>>> Client("http://127.0.0.1:8000")
Client('http://127.0.0.1:8000')
"""

from omkl.serve.client import Client, ServiceError

__all__ = ["Client", "ServiceError"]
