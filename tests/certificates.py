"""Certificates for tests of TLS: an authority of our own, a server's certificate for localhost, and a client's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")


def make_certificates(there: Path) -> Path:
    """``ca.pem``, ``localhost.pem`` and ``bridge.pem`` in *there*, with a ``.key`` beside each."""

    def openssl(*words: str) -> None:
        assert OPENSSL is not None
        subprocess.run([OPENSSL, *words], cwd=there, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout")
    openssl("req", "-x509", *key, "ca.key", "-days", "2", "-subj", "/CN=ca", "-out", "ca.pem")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san")
    for name in ("localhost", "bridge"):
        (there / "san").write_text(f"subjectAltName=DNS:{name}\n")
        openssl("req", *key, f"{name}.key", "-subj", f"/CN={name}", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    return there
