"""Every setting of NEXUS, read from the environment; the README lists the variables."""

from importlib.util import find_spec
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse_lazy

from nexus_site import logs
from nexus_site.console import password_rules, theme
from nexus_site.databases import connection_as, database_from_url, embedded_database, pooled
from nexus_site.environment import (
    UIDS,
    Environment,
    choose_temporary_folder,
    first_uid,
    kept_secret,
    mail_server_from_url,
    require_safe_production,
)
from nexus_site.languages.compiled import compiled_catalogues
from nexus_site.run import broker

env = Environment()
ENVIRONMENT_NAMES = env.asked  # the variables of this installation, for a process as another user
BASE_DIR = Path(__file__).resolve().parent.parent
WHERE = env.choice("NEXUS_ENV", "development", "production", may_be_empty=False)
PRODUCTION = WHERE == "production"
DEBUG = env.flag("DEBUG", default=False)

# Places
choose_temporary_folder()
NEXUS_VAR = env.path("NEXUS_VAR", BASE_DIR / "var")
WORKSPACE_ROOT = env.path(
    "WORKSPACE_ROOT", env.path("NEXUS_COMPANY_ROOT", NEXUS_VAR / "company")
).resolve()  # the second name is the older one
WORKSPACE_FIRST_UID = env.number("WORKSPACE_FIRST_UID", first_uid(WORKSPACE_ROOT), least=1000)
WORKSPACE_UIDS = range(WORKSPACE_FIRST_UID, WORKSPACE_FIRST_UID + UIDS)  # one for each agent
WORKSPACE_SANDBOX = env.choice("WORKSPACE_SANDBOX", "strongest", "bubblewrap", "namespaces")
WORKSPACE_BYTES = env.number("WORKSPACE_BYTES", 1_000_000_000, least=1_000_000)
REPOSITORY_BYTES = env.number("REPOSITORY_BYTES", 2 * 1024**3, least=1_000_000)  # an import
WORKSPACE_FILES = env.number("WORKSPACE_FILES", 100_000, least=1000)
WORKSPACE_RUNS = env.number("WORKSPACE_RUNS", 2, least=1)
WORKSPACE_PACKAGES = (
    env.path("WORKSPACE_PACKAGES", BASE_DIR).resolve() if env.text("WORKSPACE_PACKAGES") else None
)
NEXUS_KEYS = NEXUS_VAR / "keys"
NEXUS_SKILL_FOLDERS = env.folders(  # the first that has a skill wins
    "NEXUS_SKILL_FOLDERS", f"{BASE_DIR}/.claude/skills,~/.claude/skills"
)

# The door
NEXUS_RATE_PER_MINUTE = env.number("NEXUS_RATE_PER_MINUTE", 600, least=1)
NEXUS_RATE_BURST = env.number("NEXUS_RATE_BURST", 300, least=1)
NEXUS_BYTES_PER_MINUTE = env.number("NEXUS_BYTES_PER_MINUTE", 20_000_000, least=100_000)
NEXUS_BYTES_PER_DAY = env.number("NEXUS_BYTES_PER_DAY", 500_000_000, least=100_000)
NEXUS_ORGANISATION_BYTES_PER_DAY = env.number(
    "NEXUS_ORGANISATION_BYTES_PER_DAY", 5_000_000_000, least=100_000
)
NEXUS_ORGANISATION_BYTES = env.number("NEXUS_ORGANISATION_BYTES", 100_000_000_000, least=100_000)
NEXUS_ORGANISATION_ROWS = env.number("NEXUS_ORGANISATION_ROWS", 100_000_000, least=1)
NEXUS_ORGANISATION_AGENTS = env.number("NEXUS_ORGANISATION_AGENTS", 10_000, least=1)
NEXUS_SESSIONS_PER_DAY = env.number("NEXUS_SESSIONS_PER_DAY", 200, least=1)
NEXUS_DISK_RESERVE = env.number("NEXUS_DISK_RESERVE", 200_000_000)  # bytes that no call uses
NEXUS_MAX_BODY = env.number("NEXUS_MAX_BODY", 1024 * 1024, least=1024)  # bytes
SESSION_DEFAULT_MODE = env.text("SESSION_DEFAULT_MODE", "chat_safe")
if SESSION_DEFAULT_MODE != "chat_safe":  # Spec: modes 8
    raise ImproperlyConfigured(
        f"SESSION_DEFAULT_MODE must be 'chat_safe' (got {SESSION_DEFAULT_MODE!r}): "
        "contracts and people open other modes, one session at a time"
    )

# The ledger: key files and the last seal seen; in production the key is given or made on purpose
LEDGER_DIR = env.path("LEDGER_DIR", NEXUS_VAR / "ledger")
LEDGER_SIGNING_KEY = env.text("LEDGER_SIGNING_KEY")
LEDGER_TRUSTED_KEYS = env.items("LEDGER_TRUSTED_KEYS")

# The hands: what they may use of this installation's surroundings
WEB_SEARCH_URL = env.provider("WEB_SEARCH_URL", "searxng", "brave")
WEB_SEARCH_KEY = env.text("WEB_SEARCH_KEY")
NEXUS_WEB_CALLS_PER_DAY = env.number("NEXUS_WEB_CALLS_PER_DAY", 500)  # of an agent
CONTAINER_ENGINE = env.engine("CONTAINER_ENGINE")
CONTAINER_ENGINE_CERTS = env.path("CONTAINER_ENGINE_CERTS", NEXUS_VAR / "engine")
CONTAINER_NETWORK = env.network_name("CONTAINER_NETWORK", "")  # '': one each
CONTAINER_OUTBOUND = env.flag("CONTAINER_OUTBOUND", default=False)  # from their own networks
CONTAINER_BUILD_NETWORK = env.network_name("CONTAINER_BUILD_NETWORK", "none")
CONTAINER_BUILD_CGROUP = env.cgroup_name("CONTAINER_BUILD_CGROUP")  # '': the engine's own
CONTAINER_BASES = env.items("CONTAINER_BASES")
CONTAINER_BUILD_SECONDS = env.number("CONTAINER_BUILD_SECONDS", 300, least=1)
CONTAINER_MEMORY = env.number("CONTAINER_MEMORY", 512 * 1024 * 1024, least=6 * 1024 * 1024)
CONTAINER_IMAGE_BYTES = env.number("CONTAINER_IMAGE_BYTES", 4 * 1024**3, least=1_000_000)
CONTAINER_IMAGES = env.number("CONTAINER_IMAGES", 100, least=2)
CONTAINER_SERVICES = env.number("CONTAINER_SERVICES", 20, least=1)  # of an organisation
CONTAINER_MILLICPUS = env.number("CONTAINER_MILLICPUS", 1000, least=10)
SERVICE_ADDRESSES = env.addresses("SERVICE_ADDRESSES")

# Web server
HOST = env.text("HOST", "127.0.0.1")
PORT = env.number("PORT", 8000, least=1)
WEB_WORKERS = env.number("WEB_WORKERS", 2, least=1)
WEB_THREADS = env.number("WEB_THREADS", 8, least=1)
WEB_PEOPLE_THREADS = env.number("WEB_PEOPLE_THREADS", 4, least=2)
WEB_CONNECTIONS = env.number("WEB_CONNECTIONS", 2000, least=10)  # of each process
WEB_CONNECTIONS_PER_ADDRESS = env.number("WEB_CONNECTIONS_PER_ADDRESS", 500, least=1)
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
PUBLIC_URL = env.site("PUBLIC_URL", f"http://{HOST}:{PORT}")
SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=PRODUCTION)
METRICS_TOKEN = env.text("METRICS_TOKEN")

if PRODUCTION:
    SECRET_KEY = env.required("SECRET_KEY", "production needs a secret of its own")
    env.required("ALLOWED_HOSTS", "name the hosts, separated by commas")
    ALLOWED_HOSTS = env.items("ALLOWED_HOSTS")
    require_safe_production(
        secret_key=SECRET_KEY,
        allowed_hosts=ALLOWED_HOSTS,
        debug=DEBUG,
        encrypted=SECURE_SSL_REDIRECT,
        proxies=TRUSTED_PROXIES,
        metrics_token=METRICS_TOKEN,
        origins=env.items("CSRF_TRUSTED_ORIGINS"),
    )
else:
    SECRET_KEY = env.text("SECRET_KEY") or kept_secret(NEXUS_VAR / "secret_key")
    ALLOWED_HOSTS = env.items("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")

ROOMS = [
    *("ledger", "orgchart", "toolbox", "documents", "mailroom"),
    *("contracts", "tasks", "workspace", "governance"),
]
INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",  # our own site stands in for the theme's
    "unfold.contrib.filters",
    "nexus_site.apps.PeopleAdminConfig",
    "nexus_site.apps.ConsoleConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "axes",
    "csp",
    "django_fsm",
    "django_prometheus",
    "rest_framework",
    "django_structlog",
    "nexus_site.apps.SiteConfig",
    *ROOMS,
    *(["lab"] if find_spec("lab") else []),  # for development; an image may leave it out
]
# For people in a browser. The tool API passes `Observe` alone: see serving/handlers.py.
MIDDLEWARE = [
    "nexus_site.serving.middleware.Observe",
    "nexus_site.serving.middleware.plan_pages",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "axes.middleware.AxesMiddleware",
]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["toolbox.faces.rest.authentication.AgentKeyAuthentication"],
    "DEFAULT_THROTTLE_CLASSES": ["toolbox.faces.rest.authentication.TokenBucketThrottle"],
    "DEFAULT_PERMISSION_CLASSES": [],  # the door decides every call
    "DEFAULT_PARSER_CLASSES": ["toolbox.faces.rest.formats.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["toolbox.faces.rest.formats.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "toolbox.faces.rest.formats.FixedNegotiation",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "toolbox.faces.rest.errors.handle_exception",
    "UNAUTHENTICATED_USER": None,
}
ROOT_URLCONF = env.text("ROOT_URLCONF", "nexus_site.urls")  # benchmarks add views of their own
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Database: PostgreSQL by DATABASE_URL, or the embedded one under var/, started by its first user
DATABASE_URL = env.text("DATABASE_URL")
DATABASE_OWNER_URL = env.text("DATABASE_OWNER_URL")  # migrates; DATABASE_URL then only serves
DATABASE = pooled(
    database_from_url(DATABASE_URL) if DATABASE_URL else embedded_database(NEXUS_VAR),
    # Agents' and people's threads, and the streams'.
    connections=env.number("DATABASE_POOL", WEB_THREADS + WEB_PEOPLE_THREADS + 10, least=2),
    prepared=env.flag("DATABASE_PREPARED_STATEMENTS", default=True),
)
DATABASES = {"default": DATABASE | {"TEST": {"NAME": env.text("TEST_DATABASE", "test_nexus")}}}
SERVING_ROLE = DATABASE["USER"]
OWNER = connection_as(DATABASE_OWNER_URL)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Worker: Redis by REDIS_URL, or the embedded broker that `make up` runs
REDIS_URL = env.text("REDIS_URL")
WORKER_THREADS = env.number("WORKER_THREADS", 4, least=1)
CELERY_BROKER_URL = REDIS_URL or broker.url_under(NEXUS_VAR)
CELERY_BROKER_USE_SSL = broker.encryption(REDIS_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = broker.TIME_LIMITS
CELERY_TASK_IGNORE_RESULT = True  # results are rows; Celery only wakes us
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False  # no message of the broker stops the worker for good
CELERY_WORKER_CONSUMER = "nexus_site.run.consumer:SteadyConsumer"
CELERY_BEAT_SCHEDULER = "nexus_site.run.beat:SteadyScheduler"

# Mail to people outside: the server of EMAIL_URL; without one development writes files
EMAIL_URL = env.text("EMAIL_URL", "smtp://localhost" if PRODUCTION else "")
mail_by = "mailroom.outgoing.smtp" if EMAIL_URL else "django.core.mail.backends.filebased"
EMAIL_BACKEND = f"{mail_by}.EmailBackend"
EMAIL_FILE_PATH = NEXUS_VAR / "mail"
if EMAIL_URL:
    mail_server = mail_server_from_url(EMAIL_URL)
    EMAIL_HOST, EMAIL_PORT = mail_server.host, mail_server.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = mail_server.user, mail_server.password
    EMAIL_USE_TLS = mail_server.encrypted == "starttls"
    EMAIL_USE_SSL = mail_server.encrypted == "tls"
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "nexus@localhost")

# People
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = password_rules.PASSWORD_HASHERS
AUTH_PASSWORD_VALIDATORS = password_rules.AUTH_PASSWORD_VALIDATORS
LOGIN_URL, LOGIN_REDIRECT_URL = reverse_lazy("admin:login"), reverse_lazy("admin:index")
OTP_TOTP_ISSUER = "NEXUS"
OTP_TOTP_SYNC = False  # codes that came late, or a wrong clock here, would refuse later right ones
REQUIRE_SECOND_FACTOR = env.choice(
    "REQUIRE_SECOND_FACTOR",
    *(["board", "none"] if PRODUCTION else ["none", "board"]),
    "everybody",
)
AXES_FAILURE_LIMIT, AXES_COOLOFF_TIME = 10, 0.25  # failures, hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]  # no stranger can lock the Board out
AXES_VERBOSE = False
AXES_USERNAME_CALLABLE = "nexus_site.console.known_browsers.counted_name"
AXES_CLIENT_IP_CALLABLE = "nexus_site.serving.proxies.client_network"

# Language and time
LANGUAGE_CODE = "en"  # of the API, the ledger, the log and the commands as well
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [compiled_catalogues(BASE_DIR / "locale", NEXUS_VAR / "locale")]
LANGUAGE_COOKIE_NAME = "nexus_language"
LANGUAGE_COOKIE_AGE = 365 * 24 * 3600
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
NEXUS_LANGUAGE = env.choice("NEXUS_LANGUAGE", "en", "zh-hans")  # of e-mails to people
FORMAT_MODULE_PATH = ["nexus_site.formats"]  # one way to write a time, as in the ledger
TIME_ZONE = "UTC"
USE_TZ = True

# Files
STATIC_URL = "static/"
STATIC_ROOT = env.path("STATIC_ROOT", NEXUS_VAR / "static") if PRODUCTION else None
WHITENOISE_USE_FINDERS = not PRODUCTION  # no collectstatic on one's own machine
WHITENOISE_AUTOREFRESH = not PRODUCTION  # else a file edited under a running site is cut off
WHITENOISE_MAX_AGE = 3600 if PRODUCTION else 0
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * NEXUS_MAX_BODY  # the door measures agents' bodies itself

# Security; what must travel encrypted is decided above
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = env.number("SECURE_HSTS_SECONDS", 31_536_000 if PRODUCTION else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = PRODUCTION
SESSION_ENGINE = "nexus_site.console.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
# A browser takes cookies of such names from this host alone, and from no name below it (people 70)
COOKIE_PREFIX = "__Host-" if PRODUCTION else ""
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}nexus_session"
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}nexus_csrf"
CSRF_TRUSTED_ORIGINS = env.items("CSRF_TRUSTED_ORIGINS")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = theme.CONTENT_SECURITY_POLICY
UNFOLD = theme.UNFOLD

# Watching it run
LOGGING_CONFIG = None  # nexus_site/logs.py sets up structlog and the standard library together
PROMETHEUS_METRIC_NAMESPACE = "nexus"
DJANGO_STRUCTLOG_CELERY_ENABLED = False
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL")
logs.configure(level=LOG_LEVEL, as_json=PRODUCTION)
