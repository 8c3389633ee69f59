# Run by cpack on what it has installed for the package: what Debian's policy asks for there - manual pages and the changelog compressed (without
# name and date, so that two packages are the same), a copyright file that points to the licence instead of its text.
set(root ${CPACK_TEMPORARY_DIRECTORY}/usr/share)
file(REMOVE ${root}/doc/farfault/LICENSE)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright ${CMAKE_CURRENT_LIST_DIR}/changelog DESTINATION ${root}/doc/farfault
     FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(GLOB pages ${root}/man/man1/*.1)
execute_process(COMMAND gzip -9nf ${pages} ${root}/doc/farfault/changelog COMMAND_ERROR_IS_FATAL ANY)
