#!/usr/bin/env python3
"""nvrtc.py - takes nvcc's place in CMake (STOKER_NVCC): compiles the kernels by NVRTC of CUDA 12.8.

Machine code of CUDA 12 runs with every driver from R525 on, that of nvcc 13 needs R580; and no package index has nvcc 12.
`./run setup` installs NVRTC in build/cuda-12. The command line is as much of nvcc's as CMake uses:

usage: nvrtc.py --version | --list-gpu-arch
       nvrtc.py -ptx | -fatbin  [-gencode arch=compute_NN,code=[sm_NN,compute_NN]]... [-MD -MF FILE] [OPTION]... -o FILE SOURCE
"""
import ctypes
import glob
import os
import re
import sys

PACKAGES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "cuda-12", "nvidia")

# NVRTC cannot read the system's headers; this is what the kernels need of them.
HEADERS = {
    "stdint.h": "".join(f"typedef signed {name} int{bits}_t; typedef unsigned {name} uint{bits}_t;\n"
                        for bits, name in ((8, "char"), (16, "short"), (32, "int"), (64, "long")))
                + "typedef uint64_t uintptr_t;\n#define INT64_C(value) value##L\n#define UINT64_C(value) value##UL\n",
    "math.h": "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n",
    "stdbool.h": "", "stddef.h": "", "string.h": "",
}


def library(name):
    found = glob.glob(os.path.join(PACKAGES, "*", "lib", name + ".so.12"))
    return ctypes.CDLL(found[0]) if found else sys.exit(f"error: no {name} in {PACKAGES}: ./run setup installs it")


def strings(texts):
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def compile_for(nvrtc, architecture, source, options):
    """Returns the machine code (none for compute_NN) and the PTX."""
    def result(what):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, content)
        return content.raw

    program = ctypes.c_void_p()
    with open(source, "rb") as file:
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), file.read(), source.encode(), len(HEADERS),
                                 strings(HEADERS.values()), strings(HEADERS))
    options = options + [f"-arch={architecture}", "-default-device", f"-I{PACKAGES}/cuda_runtime/include"]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), strings(options))
    print(result("ProgramLog").rstrip(b"\0").decode(), end="")
    if failed:
        sys.exit(1)
    return result("CUBIN"), result("PTX")


def join(images):
    """Returns a fatbin of images: (sm_NN or compute_NN, content)."""
    nvfatbin, fatbin, size = library("libnvfatbin"), ctypes.c_void_p(), ctypes.c_size_t()
    options = ["-compress-all", "-compress-mode=speed"]  # LZ4, as CUDA 12.0 has it; the other modes take Zstandard
    failed = nvfatbin.nvFatbinCreate(ctypes.byref(fatbin), strings(options), len(options))
    for form, content in images:
        kind, number = form.split("_")
        add, more = (nvfatbin.nvFatbinAddCubin, ()) if kind == "sm" else (nvfatbin.nvFatbinAddPTX, (b"",))
        failed |= add(fatbin, content, ctypes.c_size_t(len(content)), number.encode(), b"", *more)
    failed |= nvfatbin.nvFatbinSize(fatbin, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    failed |= nvfatbin.nvFatbinGet(fatbin, result)
    if failed:
        sys.exit("error: libnvfatbin cannot join the images")
    return result.raw


def add_included(path, folders, found):
    """Adds the path, and what the file includes of the folders."""
    found.append(path)
    with open(path, encoding="utf-8") as file:
        names = re.findall(r'^ *# *include ["<](.*)[">]', file.read(), re.MULTILINE)
    for at in (os.path.join(folder, name) for name in names for folder in folders):
        if os.path.exists(at) and at not in found:
            add_included(at, folders, found)


def main(arguments):
    nvrtc, values, options, images, rest = library("libnvrtc"), {"-gencode": []}, [], [], iter(arguments[:-1])
    if arguments == ["--version"]:
        numbers = ctypes.c_int(), ctypes.c_int()
        nvrtc.nvrtcVersion(*map(ctypes.byref, numbers))
        return print("NVRTC, release {}.{}".format(*(number.value for number in numbers)))
    if arguments == ["--list-gpu-arch"]:
        known = (ctypes.c_int * 64)()
        nvrtc.nvrtcGetSupportedArchs(known)
        return print(*(f"compute_{number}" for number in known if number), sep="\n")
    for argument in rest:
        if argument in ("-o", "-MF", "-gencode"):
            values.setdefault(argument, []).append(next(rest))
        elif argument not in ("-ptx", "-fatbin", "-MD", "-O3", "-Xfatbin=-compress-all"):  # what NVRTC does anyway, or join()
            options.append(argument)
    for text in values["-gencode"]:
        forms = re.findall(r"(?:sm|compute)_[0-9]+", text.split("code=")[1])
        code, ptx = compile_for(nvrtc, forms[0], arguments[-1], options)
        images += [(form, code if form.startswith("sm") else ptx) for form in forms]
    with open(values["-o"][0], "wb") as file:
        file.write(join(images) if images else compile_for(nvrtc, "compute_75", arguments[-1], options)[1].rstrip(b"\0"))
    if "-MF" in values:
        add_included(arguments[-1], [option[2:] for option in options if option.startswith("-I")], found := [])
        with open(values["-MF"][0], "w", encoding="utf-8") as file:
            print(values["-o"][0], ":", " \\\n ".join(found), file=file)


if __name__ == "__main__":
    main(sys.argv[1:])
