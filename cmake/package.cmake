# Debian packages, made by deploy/package.sh: ablate-client (the command line), and ablate (server, worker, units).
# LibTorch is in neither: ablate-torch installs its wheel, or links one that is there.
set(ablate_package "${PROJECT_SOURCE_DIR}/deploy/package")
install(FILES LICENSE DESTINATION share/doc/ablate-client RENAME copyright COMPONENT client)
install(DIRECTORY "${PROJECT_BINARY_DIR}/package/man1" DESTINATION share/man COMPONENT client OPTIONAL)
install(FILES "${PROJECT_BINARY_DIR}/package/ablate.bash" DESTINATION share/bash-completion/completions RENAME ablate COMPONENT client OPTIONAL)
install(FILES LICENSE DESTINATION share/doc/ablate RENAME copyright COMPONENT server)
install(DIRECTORY examples DESTINATION share/ablate COMPONENT server)
install(PROGRAMS "${ablate_package}/ablate-torch" DESTINATION sbin COMPONENT server)
install(FILES deploy/phases.sh deploy/torch.sh DESTINATION lib/ablate COMPONENT server)
install(FILES "${ablate_package}/ablate.service" "${ablate_package}/ablate-worker.service" DESTINATION lib/systemd/system COMPONENT server)
install(FILES "${ablate_package}/server.conf" "${ablate_package}/worker.conf" DESTINATION /etc/ablate COMPONENT server)

# The worker finds LibTorch by the link that ablate-torch makes, not where this build has it. CMake could do so only
# with an empty entry in the path of the program in the build folder. An empty entry is the current folder.
install(CODE [[
  foreach(program ablate-worker libablate_cuda.so)
    set(path "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/${program}")
    if(EXISTS "${path}" AND NOT "$ENV{DESTDIR}" STREQUAL "")  # not for `cmake --install`
      execute_process(COMMAND patchelf --set-rpath /usr/lib/ablate/torch/lib:/usr/lib/ablate/torch/../nvidia/cu13/lib "${path}"
                      COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()]] COMPONENT server)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ablate)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "The ablate authors <ablate@localhost>")
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # for /etc
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL client server)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${ABLATE_TORCH_LIB};${ABLATE_TORCH_ROOT}/../nvidia/cu13/lib")
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME ablate-client)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "Command line of ablate, an ablation lab as a service")
set(CPACK_DEBIAN_SERVER_PACKAGE_NAME ablate)
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "ablate-client (= ${PROJECT_VERSION}), adduser, bubblewrap, fonts-liberation, python3-venv")
set(CPACK_COMPONENT_SERVER_DESCRIPTION "Server and worker of ablate, an ablation lab as a service")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA
    "${ablate_package}/conffiles" "${ablate_package}/postinst" "${ablate_package}/prerm" "${ablate_package}/postrm")
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
