"""The key file, and how an object is sealed and opened: age (https://age-encryption.org/v1), by pyrage.

Rules:
- An age file is a stream of authenticated chunks. One that is cut, reordered or changed is not opened.
- The first line of the plaintext is the object's name. An object under another name is refused.
- age does not say who made an object: the recipient is no secret. So the first line also has a signature of
  name and content (HMAC-SHA256), by a key that is derived from the installation's master key. An object
  without the right signature is refused.
- A base back-up is too long for that. Its signed manifest has its digest (`base.Manifest`).
- An object whose header does not end early, or that is longer than it may be, is read no further.
- The key file has identities (`AGE-SECRET-KEY-1…`), which open, or recipients (`age1…`), which only seal.
  Only its owner may read it.
"""

import hmac
import io
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Protocol

from merchant_wallet.postgres.backups.errors import BackupError, UnauthenticObject, UnusableObject

IDENTITY: Final = "AGE-SECRET-KEY-"
RECIPIENT: Final = "age1"
MAX_HEAD_BYTES: Final = 512
HEADER: Final = b"age-encryption.org/v1\n"
HEADER_END: Final = b"\n--- "
HEADER_BYTES: Final = 4096
"""The library reads an age header byte by byte, and parses all of it again for each. So it must end early."""
MAX_RECIPIENTS: Final = 20
"""Each takes about 100 bytes of the header."""
SEALED_OVERHEAD_BYTES: Final = 2**17
"""More than what age and our head add to an object that is opened in memory: 16 bytes for each 64 KiB."""
SIGNING_KEY: Final = "back-up"
"""The label that derives the signing key from the master key."""
SIGNED: Final = b"merchant-wallet back-up 1\n"
"""What every signed text begins with. A change of what is signed needs another number."""


class Reader(Protocol):
    """Something that is read from its begin to its end."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


class Writer(Protocol):
    """Something that is written to."""

    def write(self, content: bytes, /) -> int:
        """Write all of it."""
        ...

    def flush(self) -> None:
        """Nothing waits afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class BackupKey:
    """Recipients that seal, identities that open, and the key that signs, which is in no key file.

    Texts and bytes, so that this can be passed on.
    """

    recipients: tuple[str, ...]
    identities: tuple[str, ...] = field(repr=False)
    signing_key: bytes | None = field(default=None, repr=False)
    is_authenticating: bool = True

    def with_signing_key(self, signing_key: bytes) -> "BackupKey":
        """The same, for the installation that has this signing key."""
        return replace(self, signing_key=signing_key)

    def without_authentication(self) -> "BackupKey":
        """The same, which also opens what anybody may have made. Only a person may choose this."""
        return replace(self, is_authenticating=False)

    def for_sealing(self) -> "BackupKey":
        """The same without what opens objects."""
        return replace(self, identities=())

    def seal(self, name: str, content: bytes) -> bytes:
        """A signed object's bytes."""
        sealed = io.BytesIO()
        self._encrypt(f"{name} {self._sign(name, content)}", name, io.BytesIO(content), sealed)
        return sealed.getvalue()

    def seal_stream(self, name: str, source: Reader, target: Writer) -> None:
        """Read the content to its end and write an object without signature.

        Raises BackupError, and what the two raise.
        """
        self._encrypt(name, name, source, target)

    def _encrypt(self, head: str, name: str, source: Reader, target: Writer) -> None:
        age = load_age()
        recipients = [age.x25519.Recipient.from_str(text) for text in self.recipients]
        guarded = _Guarded(source)
        try:
            age.encrypt_io(_Prefixed(head.encode() + b"\n", guarded), target, recipients)
        except (age.EncryptError, OSError) as error:
            raise guarded.error or BackupError(f"{name} can't be encrypted: {error}") from error

    def open(self, name: str, source: Reader, most_bytes: int) -> bytes:
        """The content of a signed object. Raises BackupError, also if it is longer than `most_bytes`."""
        content = _Bounded(name, most_bytes)
        signature = self.open_stream(name, _BoundedReader(name, source, most_bytes), content)
        found = content.getvalue()
        if self.is_authenticating:
            self._require_signature(name, signature, found)
        return found

    def open_stream(self, name: str, source: Reader, target: Writer) -> str:
        """Read the object to its end and write its content. Returns its signature, which nobody has checked.

        What was written is right only when this returns: an object that was cut fails at its end. Raises
        BackupError, and what the two raise.
        """
        age = load_age()
        if not self.identities:
            raise BackupError(
                "The key file has no identity (AGE-SECRET-KEY-1...), so it can't read back-ups. Name "
                "the file that has it in WALLET_BACKUP_KEY_FILE."
            )
        identities = [age.x25519.Identity.from_str(text) for text in self.identities]
        begin = _read_begin(source)
        if not begin.startswith(HEADER) or HEADER_END not in begin:
            raise UnusableObject(f"{name} is damaged, cut or no back-up: it has no age header.")
        guarded, checked = _Guarded(_Prefixed(begin, source)), _HeadChecked(name, target)
        try:
            age.decrypt_io(guarded, checked, identities)
        except (age.DecryptError, OSError) as error:
            raise guarded.error or checked.error or UnusableObject(_explain(name, error)) from error
        checked.finish()
        return checked.signature

    def _sign(self, name: str, content: bytes) -> str:
        if self.signing_key is None:
            raise BackupError("Back-ups are signed with a key of the master key, and there is none.")
        signed = hmac.new(self.signing_key, SIGNED, "sha256")
        signed.update(name.encode() + b"\n")
        signed.update(content)
        return signed.hexdigest()

    def _require_signature(self, name: str, signature: str, content: bytes) -> None:
        if not signature:
            raise UnauthenticObject(
                f"{name} has no signature: somebody else who can write to the store has made it."
            )
        if not hmac.compare_digest(signature.encode(), self._sign(name, content).encode()):
            raise UnauthenticObject(
                f"{name} was signed with another master key, or by somebody else who can write to the store."
            )


def _explain(name: str, error: Exception) -> str:
    if "No matching keys" in str(error):
        return f"{name} was encrypted for another key: is WALLET_BACKUP_KEY_FILE the right file?"
    return f"{name} is damaged, cut or no back-up ({error})."


def _read_begin(source: Reader) -> bytes:
    """The first bytes of an object, which have its header."""
    begin = b""
    while len(begin) < HEADER_BYTES and (content := source.read(HEADER_BYTES - len(begin))):
        begin += content
    return begin


def load_age() -> Any:
    """The library. Raises BackupError if it is not installed."""
    try:
        import pyrage  # type: ignore[import-untyped] # It has no types.
    except ImportError as error:
        raise BackupError(
            "Back-ups need the package pyrage: install the program's locked packages."
        ) from error
    return pyrage


def make_identity() -> tuple[str, str]:
    """A new identity, and its recipient."""
    identity = load_age().x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def read_key_file(path: Path) -> BackupKey:
    """The keys of a file, one on a line; `#` begins a comment. Raises BackupError, OSError."""
    if path.stat().st_mode & (stat.S_IRWXO):
        raise BackupError(f"Everybody can read {path}: chmod 600 {path}")
    return parse_keys(path.read_text(), str(path))


def parse_keys(text: str, place: str) -> BackupKey:
    """The keys of a key file's text. Raises BackupError."""
    age = load_age()
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    strange = [line for line in lines if not line.startswith((IDENTITY, RECIPIENT))]
    if strange or not lines:
        raise BackupError(
            f"{place} is no key file: each line is an identity (AGE-SECRET-KEY-1...) or a recipient "
            "(age1...). `merchant-wallet backup key FILE` makes one."
        )
    if len(lines) > MAX_RECIPIENTS:
        raise BackupError(f"{place} has more than {MAX_RECIPIENTS} keys: an object has no room for more.")
    identities = tuple(line for line in lines if line.startswith(IDENTITY))
    try:
        own = [str(age.x25519.Identity.from_str(text).to_public()) for text in identities]
        named = [str(age.x25519.Recipient.from_str(line)) for line in lines if line.startswith(RECIPIENT)]
    except (age.IdentityError, age.RecipientError):
        # The cause is left out: it may contain the key.
        raise BackupError(f"A key in {place} is malformed.") from None
    return BackupKey(tuple(dict.fromkeys([*own, *named])), identities)


class _Prefixed:
    """Some bytes, then what the source has."""

    def __init__(self, prefix: bytes, source: Reader) -> None:
        self._prefix = prefix
        self._source = source

    def read(self, size: int = -1, /) -> bytes:
        if self._prefix:
            size = len(self._prefix) if size < 0 else size
            found, self._prefix = self._prefix[:size], self._prefix[size:]
            return found
        return self._source.read(size)


class _BoundedReader:
    """A sealed object, up to the length that its content may have."""

    def __init__(self, name: str, source: Reader, most_bytes: int) -> None:
        self._name = name
        self._source = source
        self._most_bytes = most_bytes
        self._left = most_bytes + SEALED_OVERHEAD_BYTES

    def read(self, size: int = -1, /) -> bytes:
        found = self._source.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(found)
        if self._left < 0:
            raise UnusableObject(_describe_excess(self._name, self._most_bytes))
        return found


def _describe_excess(name: str, most_bytes: int) -> str:
    return f"{name} has more than {most_bytes} bytes: it was not made by `backup`."


class _Bounded(io.BytesIO):
    """Content in memory, up to a limit."""

    def __init__(self, name: str, most_bytes: int) -> None:
        super().__init__()
        self._name = name
        self._most_bytes = most_bytes

    def write(self, content: Any, /) -> int:
        if self.tell() + len(content) > self._most_bytes:
            raise UnusableObject(_describe_excess(self._name, self._most_bytes))
        return super().write(content)


class _Guarded:
    """Keeps the source's own error, which the library would flatten into a text."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self.error: Exception | None = None

    def read(self, size: int = -1, /) -> bytes:
        try:
            return self._source.read(size)
        except Exception as error:
            self.error = error
            raise


class _HeadChecked:
    """Takes the head's line off, and passes on what follows."""

    def __init__(self, name: str, target: Writer) -> None:
        self._name = name
        self._target = target
        self._head: bytes | None = b""
        self.signature = ""
        self.error: Exception | None = None

    def write(self, content: bytes, /) -> int:
        try:
            self._write(content)
        except Exception as error:
            self.error = error
            raise
        return len(content)

    def _write(self, content: bytes) -> None:
        if self._head is None:
            self._target.write(content)
            return
        self._head += content
        head, ends, rest = self._head.partition(b"\n")
        if ends or len(self._head) > MAX_HEAD_BYTES:
            self._read_head(head)
            self._head = None
            if rest:
                self._target.write(rest)

    def _read_head(self, head: bytes) -> None:
        name, _, signature = head[:MAX_HEAD_BYTES].decode(errors="replace").partition(" ")
        if name != self._name:
            raise UnusableObject(
                f"{self._name} contains another object, {name}: somebody has renamed or replaced it."
            )
        self.signature = signature

    def flush(self) -> None:
        """For the library; the target is flushed by whoever opened it."""

    def finish(self) -> None:
        """Raises BackupError if not even the head was whole."""
        if self._head is not None:
            self._read_head(self._head)
