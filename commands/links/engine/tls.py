"""TLS to a tree, as the table [topics] says, and why it fails."""

from __future__ import annotations

import ssl

from commands.config.settings import ConfigError, TopicsConfig


def client_context(config: TopicsConfig) -> ssl.SSLContext:
    """Which certificates are trusted, and the bridge's own. Raises ConfigError where a file is no good."""
    try:
        context = ssl.create_default_context(cafile=None if config.ca_file is None else str(config.ca_file))
        if config.cert_file is not None:
            context.load_cert_chain(config.cert_file, config.key_file)
    except OSError as error:
        files = ", ".join(str(path) for path in (config.ca_file, config.cert_file, config.key_file) if path)
        raise ConfigError("ca_file, cert_file, key_file", f"{files}: {error.strerror or error}") from error
    return context


def why_unreachable(error: Exception, is_secure: bool, plain: str) -> str:
    """Why there is no connection. plain: the scheme without TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); see ca_file"
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if is_secure and isinstance(error, ssl.SSLError | ConnectionResetError):
        return f"TLS is not what it speaks there ({why}); try {plain}://"
    return why
