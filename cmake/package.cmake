# What an installation has in addition to programs and data: documents, the licence; and the Debian package of it all (`cpack -G DEB` in the
# build folder, or the target `package`). Its dependencies are those that dpkg-shlibdeps finds in the programs (package/prepare.cmake).
set(FARFAULT_MAINTAINER "The farfault authors <farfault@example.org>" CACHE STRING "who maintains the package")

# In the same places to each other as in the sources, so that links between them hold.
install(DIRECTORY docs examples DESTINATION share/doc/farfault)
install(FILES README.md LICENSE CHANGELOG.md SECURITY.md CITATION.cff DESTINATION share/doc/farfault)
install(CODE "execute_process(COMMAND \${CMAKE_COMMAND} -DFOLDER=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/doc/farfault
                              -P ${CMAKE_SOURCE_DIR}/cmake/package/links.cmake COMMAND_ERROR_IS_FATAL ANY)")

set(CPACK_PACKAGE_NAME farfault)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${FARFAULT_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "where every page of GPU memory lives, on a virtual GPU")
set(CPACK_PACKAGE_DESCRIPTION
"farfault runs an unmodified CUDA program on a virtual GPU on the CPU and says
what its memory would do under different memory managers: the program's own
copies, demand paging with prefetch and eviction, partial pages, the real
driver's managed memory, segments. Programs can be recorded once and simulated
on other machines, with other policies or less memory.
.
No GPU, no driver and no CUDA toolkit are needed.")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package/prepare.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "clang, man-db, python3, python3-matplotlib, python3-pandas")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/package/triggers) # for libfarfault-trace.so
include(CPack)
