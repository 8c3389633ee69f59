# Run by cpack on what it has installed for the package, before it is packed.
# 1. What Debian asks for: zsh's completion where its zsh looks, manual pages and the changelog compressed (without name and date, so that two
#    packages are the same), a copyright file that points to the licence instead of its text.
# 2. Dependencies, by dpkg-shlibdeps: Depends of everything but what only mpirun, the compiler of kernels and `farfault view` need, which farfault does without: Recommends. cpack's own
#    way makes no difference between them.
set(root ${CPACK_TEMPORARY_DIRECTORY}/usr)
file(REMOVE ${root}/share/doc/farfault/LICENSE)
execute_process(COMMAND ${CMAKE_COMMAND} -DFOLDER=${root}/share/doc/farfault -P ${CMAKE_CURRENT_LIST_DIR}/links.cmake COMMAND_ERROR_IS_FATAL ANY)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright ${CMAKE_CURRENT_LIST_DIR}/changelog DESTINATION ${root}/share/doc/farfault
     FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(RENAME ${root}/share/zsh/site-functions ${root}/share/zsh/vendor-completions)
file(GLOB pages ${root}/share/man/man1/*.1)
execute_process(COMMAND gzip -9nf ${pages} ${root}/share/doc/farfault/changelog COMMAND_ERROR_IS_FATAL ANY)

file(GLOB programs ${root}/bin/* ${root}/lib/*.so ${root}/lib/farfault/*.so* ${root}/lib/farfault/workloads/vectoradd) # workloads are alike
set(optional)
foreach(file libfarfault-mpi.so libfarfault-http.so farfault-compile)
  if(EXISTS ${root}/lib/farfault/${file})
    list(APPEND optional ${root}/lib/farfault/${file})
  endif()
endforeach()
list(REMOVE_ITEM programs ${optional})
list(TRANSFORM programs PREPEND "-e")
if(optional)
  list(TRANSFORM optional PREPEND "-e")
  list(PREPEND programs -dRecommends ${optional} -dDepends)
endif()
set(folder ${CPACK_TOPLEVEL_DIRECTORY}/dependencies)
file(WRITE ${folder}/debian/control "Source: farfault\n\nPackage: farfault\nArchitecture: any\n")
execute_process(COMMAND dpkg-shlibdeps -O --ignore-missing-info -l${root}/lib/farfault -l${root}/lib ${programs}
                WORKING_DIRECTORY ${folder} OUTPUT_VARIABLE found ERROR_VARIABLE said RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "dpkg-shlibdeps: ${said}")
endif()
foreach(field Depends Recommends)
  if(found MATCHES "shlibs:${field}=([^\n]*)")
    string(TOUPPER ${field} name)
    set(CPACK_DEBIAN_PACKAGE_${name} ${CMAKE_MATCH_1})
  endif()
endforeach()
