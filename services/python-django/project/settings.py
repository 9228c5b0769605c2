"""Django's settings: a service without a database, templates, sessions or cookies."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
MODE = os.environ.get("MODE", "platform")

DEBUG = False
# It is asked under any name, by the lab and by whoever tries it; no answer contains the name.
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
USE_I18N = False

# The contract's POST has no form and no cookie: with neither, there is nothing for the middleware
# of sessions and CSRF. Django's CommonMiddleware would set Content-Length too, but in ASGI each
# such synchronous middleware sends every request to a thread and back.
MIDDLEWARE = ["project.middleware.content_length"]

DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024

# Errors of the server only: the contract wants nothing logged per request, a refused one included.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {
        "django": {"handlers": ["console"], "level": "ERROR", "propagate": False},
        "django.security.RequestDataTooBig": {"level": "CRITICAL"},
    },
}
