# Words of the command `tessera` for bash.
_tessera() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  local commands="run notebook sbatch profile replay doctor info env shard stats plot svd eigh matmul fft solve reshard stablehlo explain advise simulate machine bench"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$commands --help --version" -- "$word"))
    return
  fi
  local layout="--mesh --spec --json" ranks="--np --verbose"
  local options
  case $command in
    run) options="--np --dry-run --launcher" ;;
    notebook) options="--np --install --no-browser" ;;
    sbatch) options="--nodes --ntasks --cpus-per-task --time --partition --account --mem --array --job-name --warn --no-requeue --launcher --mpi --output --replace --submit" ;;
    profile) options="--np --output" ;;
    replay) options="--rank --debugger" ;;
    info | env) options="--json" ;;
    shard) options="--dtype --output $layout" ;;
    stats | plot) options="$ranks $layout" ;;
    svd | eigh | matmul | solve | reshard) options="--output --force $ranks $layout" ;;
    fft) options="--output --force --inverse --real --axes $ranks $layout" ;;
    stablehlo) options="--input --random --explain --ignore-shardings --output --force $ranks $layout" ;;
    explain) options="matmul fft solve lu reshard train cg --np --dtype --inverse --real --transposed --axes --text --machine $layout" ;;
    advise) options="matmul fft solve --np --mesh --memory --dtype --inverse --real --transposed --axes --machine --json" ;;
    simulate) options="matmul fft solve lu reshard train cg --np --output --dtype --inverse --real --transposed --axes --machine $layout" ;;
    machine) options="--thorough --output --json" ;;
    bench) options="--calibrate --filter --ranks --json --list" ;;
  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options --help" -- "$word")) ;;
    *) COMPREPLY=($([ "$command" = explain ] && compgen -W "${options%% --*}" -- "$word"; compgen -f -- "$word")) ;;
  esac
}
complete -o filenames -F _tessera tessera
