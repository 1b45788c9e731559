// `ablate completion SHELL`: a script by which a shell asks this program what completes a command.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/command_table.h"
#include "proto/reflect/text.h"

namespace ablate::client {
namespace {

// clang-format off
constexpr char kBash[] = R"sh(# Completes ablate in bash 4.3 or newer. In ~/.bashrc:
#   eval "$(ablate completion bash)"
_ablate() {
  local program=ablate rest=${COMP_LINE:0:COMP_POINT} words=() kind='' word i
  # Readline breaks words also at = and :, which belong to ours.
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${rest%%[![:space:]]*}
    rest=${rest#"$word"}
    if [[ $i == 0 || -n $word ]]; then words+=(''); fi
    word=${COMP_WORDS[i]}
    if ((i == COMP_CWORD)); then word=$rest; fi
    words[-1]+=$word
    rest=${rest#"$word"}
  done
  if [[ ${words[0]} == */* ]]; then program=${words[0]/#\~/$HOME}; fi
  # Readline keeps what comes before the part that it completes.
  if [[ $word == [=:]* ]]; then word=''; fi
  local kept=${words[-1]%"$word"}
  kept=${kept%@}  # which breaks words, but belongs to that part
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS=$'\t' read -r word _; do COMPREPLY+=("${word#"$kept"}"); done
  } < <("$program" __complete "${words[@]:1}" 2>/dev/null)
  case $kind in
    files) compopt -o default ;;
    folders) compopt -o dirnames ;;
    nospace) compopt -o nospace ;;
  esac
}
complete -F _ablate ablate
)sh";

constexpr char kZsh[] = R"sh(#compdef ablate
# Completes ablate in zsh. In ~/.zshrc, after compinit:
#   eval "$(ablate completion zsh)"
_ablate() {
  local program=ablate line help
  local -a lines candidates end
  if [[ $words[1] == */* ]]; then program=${(Q)words[1]/#\~/$HOME}; fi
  lines=("${(@f)$("$program" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  case $lines[1] in
    files) compset -P 1 '--*='; _files; return ;;
    folders) compset -P 1 '--*='; _files -/; return ;;
    nospace) end=(-S '') ;;
  esac
  for line in "${(@)lines[2,-1]}"; do
    help=${line#*$'\t'}
    candidates+=("${${line%%$'\t'*}//:/\\:}${help:+:$help}")
  done
  _describe ablate candidates $end
}
if [[ $funcstack[1] == _ablate ]]; then _ablate "$@"; else compdef _ablate ablate; fi
)sh";

constexpr char kFish[] = R"sh(# Completes ablate in fish. In ~/.config/fish/config.fish:
#   ablate completion fish | source
function __ablate_complete
    set -l program ablate
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    string match -q '*/*' -- $words[1]; and set program $words[1]
    set -e words[1]
    set -l lines ($program __complete $words "$last" 2>/dev/null)
    set -l kept (string match -r -- '^--[^=]*=' $last)
    set -l path (string replace -- "$kept" '' $last)
    switch "$lines[1]"
        case files
            __fish_complete_path $path | string replace -r '^' -- "$kept"
        case folders
            __fish_complete_directories $path | string replace -r '^' -- "$kept"
        case '*'
            set -e lines[1]
            string join -- \n $lines
    end
end
complete -c ablate -f -k -a '(__ablate_complete)'
)sh";

// clang-format on

struct CompletionOptions {
  std::string shell;
};

// Returns null for another shell.
const char* ScriptOf(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : nullptr;
}

}  // namespace

Action DefineCompletion(Command* command) {
  auto options = std::make_shared<CompletionOptions>();
  command->Argument(&options->shell, "SHELL", "Shell: bash, zsh or fish");
  command->Footer(
      "The script completes commands, options and their values, files, and names: of experiments, "
      "cells, data sets, models and servers. Names are asked of the server that commands use, if "
      "it answers within 0.3 seconds.\n\n"
      "Lines for the files that a shell reads when it starts:\n"
      "  ~/.bashrc                   eval \"$(ablate completion bash)\"\n"
      "  ~/.zshrc, after compinit    eval \"$(ablate completion zsh)\"\n"
      "  ~/.config/fish/config.fish  ablate completion fish | source\n\n"
      "Example:\n  ablate completion bash");
  return [options](const Context& context) {
    const char* script = ScriptOf(options->shell);
    if (script == nullptr) {
      context.console.Error(absl::StrCat("SHELL: ", reflect::Quoted(options->shell),
                                         " is unknown; expected bash, zsh or fish"));
      return kUsage;
    }
    context.console.data() << script;
    return kSuccess;
  };
}

}  // namespace ablate::client
