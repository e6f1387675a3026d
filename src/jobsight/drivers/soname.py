"""What makers call their libraries, and where those are: for the agent too, which loads none of them."""

# Where makers and distributions put libraries that the loader may not know of.
FOLDERS = (
    "/opt/rocm/lib", "/usr/lib/habanalabs", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
)  # fmt: skip
ROCM = ("librocm_smi64.so.7", "librocm_smi64.so.6", "librocm_smi64.so.5", "librocm_smi64.so.1", "librocm_smi64.so")
XPUM = ("libxpum.so.1", "libxpum.so")
HLML = ("libhlml.so",)


def places(names: tuple[str, ...]) -> tuple[str, ...]:
    """Where a library may be."""
    return tuple(f"{folder}/{name}" for folder in FOLDERS for name in names)
