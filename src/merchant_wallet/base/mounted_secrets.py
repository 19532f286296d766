"""Files with secrets that a container engine or Kubernetes mounts, and what to do there about their modes.

Such a file is mounted for one container. Its mode is not the program's to judge, and nobody can change it
from inside: a volume of Kubernetes has root's files with mode 0644, unless the pod says otherwise.
"""

from pathlib import Path
from typing import Final

FOLDERS: Final = (Path("/run/secrets"), Path("/var/run/secrets"))
KUBERNETES_VOLUME: Final = "..data"
"""The link through which Kubernetes replaces all files of a volume at once."""
MODE_ADVICE: Final = "in Kubernetes, set defaultMode: 0440 for the volume and fsGroup for the pod"
OWNER_ADVICE: Final = (
    "in Kubernetes, set fsGroupChangePolicy: OnRootMismatch, so that its group gets no rights"
)


def is_mounted_secret(path: Path) -> bool:
    """Whether this file is below a container's folder of secrets or in a volume of Kubernetes."""
    parents = path.absolute().parents
    return (path.parent / KUBERNETES_VOLUME).is_symlink() or any(folder in parents for folder in FOLDERS)
