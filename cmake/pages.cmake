# Manual pages and shell completion, printed by the program itself (src/cli/interface/manual.c, completion.c), into BUILD/share as in an installation.
# One page per command in src/cli/interface/commands.def. Builds with checks are not installed and go without.
if(FARFAULT_SANITIZE OR FARFAULT_FUZZ OR FARFAULT_COVERAGE)
  return()
endif()
set(share ${CMAKE_BINARY_DIR}/share)
set(pages)

# printed(FILE FOLDER arguments...): what `farfault arguments...` prints, as share/FOLDER/FILE.
function(printed file folder)
  set(made ${share}/${folder}/${file})
  file(MAKE_DIRECTORY ${share}/${folder})
  add_custom_command(
    OUTPUT ${made}
    COMMAND sh -c "out=$1; shift; \"$@\" >\"$out.new\" && mv \"$out.new\" \"$out\"" sh ${made} $<TARGET_FILE:farfault> ${ARGN}
    DEPENDS farfault VERBATIM COMMENT "Writing share/${folder}/${file}")
  install(FILES ${made} DESTINATION share/${folder})
  set(pages ${pages} ${made} PARENT_SCOPE)
endfunction()

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/interface/commands.def)
file(STRINGS src/cli/interface/commands.def commands REGEX "^X\\([a-z]+\\)")
printed(farfault.1 man/man1 help --man)
foreach(line ${commands})
  string(REGEX REPLACE "^X\\(([a-z]+)\\).*" "\\1" command ${line})
  printed(farfault-${command}.1 man/man1 help --man ${command})
endforeach()
printed(farfault bash-completion/completions completion bash)
printed(_farfault zsh/site-functions completion zsh)
printed(farfault.fish fish/vendor_completions.d completion fish)
add_custom_target(pages ALL DEPENDS ${pages})
