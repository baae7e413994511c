//! The page of a run.

use std::sync::Arc;

use super::{Run, refuse};
use crate::deployment::{Deployment, PageSettings, Token};
use crate::exit;
use crate::live::metrics::RunState;
use crate::live::page::temporary::TemporaryStore;
use crate::live::page::{self, PageServer};

impl Run {
    /// Adds the page of the options to a deployment.
    pub(super) fn add_page(&self, deployment: &mut Deployment) {
        let Some(listen) = self.page else { return };
        let settings = deployment.page.take().unwrap_or_else(|| PageSettings::of(listen));
        let token = self.page_token_file.clone().map(Token::File).or_else(|| settings.token.clone());
        deployment.page = Some(PageSettings { listen, token, ..settings });
    }

    /// Sets the store of a run with a page that keeps none: the page shows what is in it.
    pub(super) fn set_page_store(&self, deployment: &mut Deployment) -> Result<(), u8> {
        let Some(settings) = &deployment.page else { return Ok(()) };
        if !page::IS_AVAILABLE {
            return Err(refuse(page::UNAVAILABLE, exit::USAGE));
        }
        if deployment.synchronized.is_some() {
            return Err(refuse("--page: a synchronizer has no verdicts to show", exit::USAGE));
        }
        settings.check().map_err(|why| refuse(&format!("--page: {why}"), exit::USAGE))?;
        let store = match self.page_store.get() {
            Some(store) => store,
            None => {
                let store = TemporaryStore::of_run().map_err(|why| refuse(&why, exit::TRACE))?;
                self.page_store.get_or_init(|| store)
            }
        };
        deployment.store = Some(store.settings());
        Ok(())
    }

    /// Serves the page, if there is one, before the networks are joined.
    #[cfg(feature = "page")]
    pub(super) fn serve_page(
        &self,
        deployment: &Deployment,
        state: Option<&Arc<RunState>>,
    ) -> Result<Option<PageServer>, u8> {
        use crate::live::page::Subject;

        let (Some(settings), Some(store)) = (&deployment.page, &deployment.store) else { return Ok(None) };
        settings.check().map_err(|why| refuse(&format!("--page: {why}"), exit::USAGE))?;
        let subject = Subject {
            kind: rondel_page::Kind::Run,
            store: store.path.clone(),
            series: Some(self.series(deployment)),
            described: None,
            signals: Vec::new(),
            state: state.cloned(),
            playground: None,
        };
        PageServer::start(settings, subject).map(Some).map_err(|why| refuse(&why, exit::USAGE))
    }

    /// Refuses a page, which this build does not have.
    #[cfg(not(feature = "page"))]
    pub(super) fn serve_page(
        &self,
        deployment: &Deployment,
        _: Option<&Arc<RunState>>,
    ) -> Result<Option<PageServer>, u8> {
        match &deployment.page {
            Some(_) => Err(refuse(page::UNAVAILABLE, exit::USAGE)),
            None => Ok(None),
        }
    }
}
