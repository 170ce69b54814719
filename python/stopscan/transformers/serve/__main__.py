from stopscan.transformers.serve import main

main()
