#include "arguments.hpp"
#include "dispatch.hpp"

NB_MODULE(_native, module) {
    module.doc() = "Compiled loops; `odeco.kernels` says what each does.";
    module.attr("instruction_set") = odeco::instruction_set();
    odeco::bind_words(module);
    odeco::bind_documents(module);
    odeco::bind_chains(module);
    odeco::bind_short_chains(module);
    odeco::bind_step_features(module);
    odeco::bind_mixtures(module);
    odeco::bind_samples(module);
    odeco::bind_tables(module);
    odeco::bind_frames(module);
    odeco::bind_text(module);
}
