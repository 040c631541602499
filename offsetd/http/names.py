"""Names for label values: what an API key or an error code is called."""

from protocol.api import APIS
from protocol.errors import Code

API_NAMES = {key: api.request.__name__.removesuffix("Request") for key, api in APIS.items()}
CODE_NAMES = {int(code): code.name for code in Code}


def api_name(api_key: int) -> str:
    """Return Kafka's name of an API, or its number."""
    return API_NAMES.get(api_key, str(api_key))


def code_name(error_code: int) -> str:
    """Return Kafka's name of an error code, or its number."""
    return CODE_NAMES.get(error_code, str(error_code))
