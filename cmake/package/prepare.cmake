# Run by cpack on what it has installed for the package, before it is packed.
# 1. What Debian asks for: zsh's completion where its zsh looks, manual pages and the changelog compressed (without name and date, so that two
#    packages are the same), a copyright file that points to the licence instead of its text.
# 2. Dependencies, by dpkg-shlibdeps: Depends of everything but what farfault does without: Recommends of what only the compiler of kernels and
#    `farfault view` need; Suggests of what sweeps under mpirun need. That is Open MPI's library, which comes with mpirun; on Ubuntu it brings an LLVM and
#    libraries for AMD's GPUs with it. cpack's own way makes no difference between them.
set(root ${CPACK_TEMPORARY_DIRECTORY}/usr)
file(REMOVE ${root}/share/doc/farfault/LICENSE)
execute_process(COMMAND ${CMAKE_COMMAND} -DFOLDER=${root}/share/doc/farfault -P ${CMAKE_CURRENT_LIST_DIR}/links.cmake COMMAND_ERROR_IS_FATAL ANY)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright ${CMAKE_CURRENT_LIST_DIR}/changelog DESTINATION ${root}/share/doc/farfault
     FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(RENAME ${root}/share/zsh/site-functions ${root}/share/zsh/vendor-completions)
file(GLOB pages ${root}/share/man/man1/*.1)
execute_process(COMMAND gzip -9nf ${pages} ${root}/share/doc/farfault/changelog COMMAND_ERROR_IS_FATAL ANY)

file(GLOB programs ${root}/bin/* ${root}/lib/*.so ${root}/lib/farfault/*.so* ${root}/lib/farfault/workloads/vectoradd) # workloads are alike
function(of_field field) # what is in these files is not in Depends
  set(found)
  foreach(file ${ARGN})
    if(EXISTS ${root}/lib/farfault/${file})
      list(APPEND found ${root}/lib/farfault/${file})
    endif()
  endforeach()
  set(rest ${programs})
  if(found)
    list(REMOVE_ITEM rest ${found})
    list(TRANSFORM found PREPEND "-e")
    list(APPEND optional -d${field} ${found})
  endif()
  set(programs ${rest} PARENT_SCOPE)
  set(optional ${optional} PARENT_SCOPE)
endfunction()
set(optional)
of_field(Recommends libfarfault-http.so farfault-compile)
of_field(Suggests libfarfault-mpi.so)
list(TRANSFORM programs PREPEND "-e")
list(PREPEND programs ${optional} -dDepends)
set(folder ${CPACK_TOPLEVEL_DIRECTORY}/dependencies)
file(WRITE ${folder}/debian/control "Source: farfault\n\nPackage: farfault\nArchitecture: any\n")
execute_process(COMMAND dpkg-shlibdeps -O --ignore-missing-info -l${root}/lib/farfault -l${root}/lib ${programs}
                WORKING_DIRECTORY ${folder} OUTPUT_VARIABLE found ERROR_VARIABLE said RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "dpkg-shlibdeps: ${said}")
endif()
foreach(field Depends Recommends Suggests)
  if(found MATCHES "shlibs:${field}=([^\n]*)")
    string(TOUPPER ${field} name)
    set(value ${CMAKE_MATCH_1})
    if(CPACK_DEBIAN_PACKAGE_${name}) # what cmake/package.cmake names itself
      string(PREPEND value "${CPACK_DEBIAN_PACKAGE_${name}}, ")
    endif()
    set(CPACK_DEBIAN_PACKAGE_${name} ${value})
  endif()
endforeach()
