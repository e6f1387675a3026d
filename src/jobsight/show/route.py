"""Names in addresses: `{key:name}` takes whatever a job may be called, newlines and slashes as well.

The framework's own `path` stops at a newline.
"""

from starlette.convertors import Convertor, register_url_convertor


class Name(Convertor[str]):
    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", Name())
