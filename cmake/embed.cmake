# cmake -DIN=file -DOUT=file.c -DNAME=name -P embed.cmake: the file as a NUL-terminated C array `name`.
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
get_filename_component(file ${IN} NAME)
file(WRITE ${OUT} "/* Made from ${file}. */\nextern const char ${NAME}[];\nconst char ${NAME}[] = {\n${bytes}\n0};\n")
