"""Look-alike addresses: those that begin and end as a known one and are another (address poisoning). Pure.

Rules:
- People compare the first and the last characters, and wallets show only those. So an attacker makes an
  address with the same ones, and waits until somebody copies it.
- What every address of a family begins with (`0x`, `T`) does not count.
- EVM addresses are compared in lower case: there the case of letters is only a checksum.
"""

from typing import Final

from merchant_wallet.base.addresses import decode_base58

ENDS: Final = 4
"""So many characters at each end. Eight in all take minutes to find on one graphics card."""
_EVM_PREFIX: Final = "0x"
_EVM_DIGITS: Final = 40
_TRON_CHARACTERS: Final = 34
_CHECKSUM_BITS: Final = 32
_FIRST_OF_TRON: Final = 0x41 << 160
_MAX: Final = (1 << 160) - 1


def show_ends(address: str) -> str:
    """The beginning and the end of a valid address, as people read it: `0xd8da…6045`, `TJRyW…5tDeC`."""
    shown = _fold(address)
    return f"{_beginning(shown)}…{shown[-ENDS:]}"


def looks_like(address: str, known: str) -> bool:
    """Whether a valid address may be taken for another one."""
    return _fold(address) != _fold(known) and show_ends(address) == show_ends(known)


def find_text_bounds(address: str) -> tuple[str, str]:
    """The least and the greatest text, in lower case, of the addresses that begin as this one."""
    beginning = _beginning(_fold(address)).lower()
    # No form has a character after z.
    return beginning, beginning + "z" * (len(address) - len(beginning))


def find_byte_bounds(address: str) -> tuple[bytes, bytes]:
    """The least and the greatest 20 bytes of the addresses that begin as this one."""
    beginning = _beginning(_fold(address))
    if beginning.startswith(_EVM_PREFIX):
        digits = beginning.removeprefix(_EVM_PREFIX)
        low, high = (int(digits.ljust(_EVM_DIGITS, end), 16) for end in "0f")
    else:
        low, high = (
            (decode_base58(beginning.ljust(_TRON_CHARACTERS, end)) >> _CHECKSUM_BITS) - _FIRST_OF_TRON
            for end in "1z"
        )
    return tuple(min(max(bound, 0), _MAX).to_bytes(20, "big") for bound in (low, high))  # type: ignore[return-value] # Two of them.


def _beginning(folded: str) -> str:
    return folded[: (len(_EVM_PREFIX) if folded.startswith(_EVM_PREFIX) else 1) + ENDS]


def _fold(address: str) -> str:
    return address.lower() if address.startswith(_EVM_PREFIX) else address
