# The page that `farfault report --html` writes: web/ and its chart library in one file, BUILD/share/farfault/report.html.
# Needs node and npm, and npm's registry when web/package-lock.json has changed. Packages go into BUILD/web, not into the source.
option(FARFAULT_WEB "build the page of farfault report --html (needs node and npm)" ON)
find_program(NODE NAMES node nodejs)
find_program(NPM npm)
if(NOT FARFAULT_WEB OR FARFAULT_SANITIZE OR FARFAULT_FUZZ) # the same page for every build: it is tested once
  return()
endif()
if(NOT NODE OR NOT NPM)
  message(STATUS "node or npm is missing: farfault report will be without --html")
  return()
endif()

set(web ${CMAKE_SOURCE_DIR}/web)
set(web_build ${CMAKE_BINARY_DIR}/web)
set(web_page ${CMAKE_BINARY_DIR}/share/farfault/report.html)
file(MAKE_DIRECTORY ${web_build})
file(GLOB web_sources CONFIGURE_DEPENDS ${web}/src/*.js ${web}/*.css ${web}/*.html ${web}/build.mjs)
set(web_packages ${web}/.npmrc ${web}/package.json ${web}/package-lock.json)
add_custom_command(
  OUTPUT ${web_build}/installed
  COMMAND ${CMAKE_COMMAND} -E copy ${web_packages} ${web_build}
  COMMAND sh -c "\"$1\" ci --loglevel=error --no-progress || { echo 'farfault: npm could not install what the page needs; cmake -DFARFAULT_WEB=OFF builds without it' >&2; exit 1; }" sh ${NPM}
  COMMAND ${CMAKE_COMMAND} -E touch ${web_build}/installed
  WORKING_DIRECTORY ${web_build} DEPENDS ${web_packages} COMMENT "Installing the page's packages" VERBATIM)
add_custom_command(
  OUTPUT ${web_page}
  COMMAND ${NODE} ${web}/build.mjs ${web_build}/node_modules ${web_page}
  DEPENDS ${web_build}/installed ${web_sources} COMMENT "Bundling the report's page" VERBATIM)
add_custom_target(report_page ALL DEPENDS ${web_page})
install(FILES ${web_page} DESTINATION share/farfault)
