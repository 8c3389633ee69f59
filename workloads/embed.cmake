# cmake -DPTX=in.ptx -DOUT=out.c -P embed.cmake: the PTX as a NUL-terminated C array `workload_ptx`.
file(READ ${PTX} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
get_filename_component(name ${PTX} NAME)
file(WRITE ${OUT} "/* Made from ${name}. */\nextern const char workload_ptx[];\nconst char workload_ptx[] = {\n${bytes}\n0};\n")
