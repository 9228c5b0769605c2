"""The Flask application: its settings, its routes and its errors."""

from flask import Flask, Response
from flask.json.provider import DefaultJSONProvider, JSONProvider
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import Rule

import compute
import hello
import http_contract

MAX_BODY_BYTES = 16 * 1024 * 1024


class CompactJSON(DefaultJSONProvider):
    """Flask's own JSON, without spaces, the keys in the order in which they are given."""

    sort_keys = False
    # The base class's answer is the text alone, where the default one's ends in a newline.
    response = JSONProvider.response

    def dumps(self, obj: object, **kwargs: object) -> str:
        return super().dumps(obj, separators=(",", ":"), **kwargs)


class ExactRule(Rule):
    """A rule for the methods that it names: Werkzeug adds HEAD to GET, the contract does not."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.methods.discard("HEAD")


def create_app() -> Flask:
    """Makes the application; its cache is filled by then."""
    app = Flask(__name__, static_folder=None)
    app.json = CompactJSON(app)
    app.url_rule_class = ExactRule
    app.url_map.merge_slashes = False
    app.config.update(PROVIDE_AUTOMATIC_OPTIONS=False, MAX_CONTENT_LENGTH=MAX_BODY_BYTES)
    app.register_error_handler(HTTPException, empty_error)
    for blueprint in (hello.blueprint, http_contract.blueprint, compute.blueprint):
        app.register_blueprint(blueprint)
    app.add_url_rule("/health", view_func=lambda: Response(), endpoint="health")
    return app


def empty_error(error: HTTPException) -> Response:
    """An error is its status alone; a known path with another method is an unknown one."""
    return Response(status=404 if isinstance(error, MethodNotAllowed) else error.code)
